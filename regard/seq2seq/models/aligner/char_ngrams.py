"""Hashed character n-grams: words with similar spelling have similar vectors, across languages."""

import hashlib
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

EDGE = "\N{SYMBOL FOR SPACE}"
"""Marks the start and the end of a word, so that suffixes differ from infixes."""


def char_ngrams(words: Sequence[str], size: int) -> Float[Tensor, "word size"]:
    """A unit vector for each word; 0 for an empty word.

    Each character bigram and trigram has a vector of ±1, the bits of its hash; a word's vector is
    their normalised sum. So the dot product of two words is about the share of n-grams that they
    have in common, and nothing is learned or stored.

    >>> one, other, third = char_ngrams(["minister", "ministre", "apple"], 128)
    >>> bool(one @ other > 0.4), bool((one @ third).abs() < 0.3)
    (True, True)
    """
    cached: dict[str, np.ndarray] = {}
    found = np.zeros((len(words), size), np.float32)
    for row, word in enumerate(words):
        for ngram in ngrams(word):
            if ngram not in cached:
                cached[ngram] = _signs(ngram, size)
            found[row] += cached[ngram]
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    return torch.from_numpy(found / np.maximum(lengths, 1e-6))


def ngrams(word: str) -> set[str]:
    """Character bigrams and trigrams, with the word's edges marked.

    >>> sorted(ngrams("ab"))
    ['ab', 'ab␠', 'b␠', '␠a', '␠ab']
    """
    if not word:
        return set()
    edged = f"{EDGE}{word}{EDGE}"
    return {
        edged[start : start + length]
        for length in (2, 3)
        for start in range(len(edged) - length + 1)
    }


def _signs(ngram: str, size: int) -> np.ndarray:
    key = ngram.encode("utf-8", "surrogatepass")
    blocks = [
        hashlib.blake2b(key, salt=block.to_bytes(16, "big")).digest()
        for block in range(-(-size // 512))
    ]
    bits = np.unpackbits(np.frombuffer(b"".join(blocks), np.uint8))[:size]
    return 2.0 * bits.astype(np.float32) - 1.0
