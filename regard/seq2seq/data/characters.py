"""Text as characters."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, final

from regard.seq2seq.batch import UNK
from regard.seq2seq.data.tokenizer import SPECIAL, Encoding, Normal, Tokenizer


@final
class Characters(Tokenizer):
    """Each character (Unicode code point) is a token."""

    kind = "characters"

    @classmethod
    def build(
        cls, lines: Iterable[str], size: int | None = None, normal: Normal = None
    ) -> "Characters":
        """The most frequent characters, so many that the vocabulary has at most `size` tokens."""
        counts: Counter[str] = Counter()
        for line in lines:
            counts.update(cls.prepare(line, normal))
        return cls(most_frequent(counts, size), normal)

    @classmethod
    def from_dict(cls, described: dict[str, Any]) -> "Characters":
        """What `described` told."""
        return cls(described["pieces"], described["normal"])

    def tokenize(self, text: str) -> Encoding:
        ids = [self._numbers.get(character, UNK) for character in text]
        return Encoding(ids, [(n, n + 1) for n in range(len(text))], list(text))

    def detokenize(self, pieces: Iterable[str]) -> str:
        return "".join(pieces)


def most_frequent(counts: Counter[str], size: int | None) -> list[str]:
    """By falling frequency and then by code point, so that equal texts give equal vocabularies."""
    ranked = sorted(counts, key=lambda piece: (-counts[piece], piece))
    return ranked if size is None else ranked[: max(0, size - len(SPECIAL))]
