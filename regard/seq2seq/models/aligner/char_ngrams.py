"""Words as vectors by how they are spelt: alike words have alike vectors, in any two languages."""

import hashlib
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

EDGE = "\N{SYMBOL FOR SPACE}"
"""What stands for the beginning and the end of a word, so that endings differ from middles."""


def char_ngrams(words: Sequence[str], size: int) -> Float[Tensor, "word size"]:
    """For each word a vector of length 1; those of an empty word are 0.

    A piece of two or three characters has a vector of ±1, bits of its hash; a word has the sum of
    its pieces'. So the product of two words is about the share of pieces that they have in common,
    and nothing is learned or kept.

    >>> one, other, third = char_ngrams(["minister", "ministre", "apple"], 128)
    >>> bool(one @ other > 0.4), bool((one @ third).abs() < 0.3)
    (True, True)
    """
    known: dict[str, np.ndarray] = {}
    found = np.zeros((len(words), size), np.float32)
    for row, word in enumerate(words):
        for piece in pieces(word):
            if piece not in known:
                known[piece] = _signs(piece, size)
            found[row] += known[piece]
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    return torch.from_numpy(found / np.maximum(lengths, 1e-6))


def pieces(word: str) -> set[str]:
    """Two and three characters that follow each other, the word's edges counted.

    >>> sorted(pieces("ab"))
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


def _signs(piece: str, size: int) -> np.ndarray:
    key = piece.encode("utf-8", "surrogatepass")
    blocks = [
        hashlib.blake2b(key, salt=block.to_bytes(16, "big")).digest()
        for block in range(-(-size // 512))
    ]
    bits = np.unpackbits(np.frombuffer(b"".join(blocks), np.uint8))[:size]
    return 2.0 * bits.astype(np.float32) - 1.0
