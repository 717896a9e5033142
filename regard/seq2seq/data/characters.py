"""A character tokenizer."""

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
        """A vocabulary of the most frequent characters, of at most `size` tokens."""
        counts: Counter[str] = Counter()
        for line in lines:
            counts.update(cls.prepare(line, normal))
        return cls(most_frequent(counts, size), normal)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Characters":
        """The inverse of `to_dict`."""
        return cls(fields["pieces"], fields["normal"])

    def tokenize(self, text: str) -> Encoding:
        ids = [self._numbers.get(character, UNK) for character in text]
        return Encoding(ids, [(n, n + 1) for n in range(len(text))], list(text))

    def detokenize(self, pieces: Iterable[str]) -> str:
        return "".join(pieces)


def most_frequent(counts: Counter[str], size: int | None) -> list[str]:
    """Sorted by falling frequency, then by code point: the result is deterministic."""
    ranked = sorted(counts, key=lambda piece: (-counts[piece], piece))
    return ranked if size is None else ranked[: max(0, size - len(SPECIAL))]
