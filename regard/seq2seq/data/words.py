"""A word tokenizer."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, final

from tokenizers import Regex, pre_tokenizers

from regard.seq2seq.batch import UNK, Span
from regard.seq2seq.data.characters import most_frequent
from regard.seq2seq.data.tokenizer import Encoding, Normal, Tokenizer

PATTERN = (
    r" ?[\p{L}\p{N}_][\p{L}\p{M}\p{N}_\u200c\u200d]*"  # a word, with combining marks and joiners
    r"| ?[^\p{L}\p{N}_\s]+"  # punctuation, symbols, emoji
    r"|\s+(?!\S)|\s+"  # more than one space
)
"""A word includes the space before it, so that joining words gives the text."""

splitter = pre_tokenizers.Split(Regex(PATTERN), "isolated")


def words_of(text: str) -> list[tuple[str, Span]]:
    """Words with their spans. The first gets a space before it, like any other.

    >>> words_of("Ah, so!")
    [(' Ah', (0, 2)), (',', (2, 3)), (' so', (3, 6)), ('!', (6, 7))]
    """
    if not text:
        return []
    return [
        (word, without_space(span)) for word, span in splitter.pre_tokenize_str(with_space(text))
    ]


def with_space(text: str) -> str:
    """The text with a space before it, and `?` for a lone surrogate."""
    return f" {text}".encode("utf-8", "replace").decode()


def without_space(span: Span) -> Span:
    """A span of `with_space(text)` as one of the text."""
    return max(0, span[0] - 1), span[1] - 1


@final
class Words(Tokenizer):
    """Words and runs of punctuation are tokens. A word not seen in building is UNK."""

    kind = "words"
    unknown = " ⁇"

    @classmethod
    def build(cls, lines: Iterable[str], size: int | None = None, normal: Normal = None) -> "Words":
        """A vocabulary of the most frequent words, of at most `size` tokens."""
        counts: Counter[str] = Counter()
        for line in lines:
            counts.update(word for word, _ in words_of(cls.prepare(line, normal)))
        return cls(most_frequent(counts, size), normal)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "Words":
        """The inverse of `to_dict`."""
        return cls(fields["pieces"], fields["normal"])

    def tokenize(self, text: str) -> Encoding:
        found = words_of(text)
        ids = [self._numbers.get(word, UNK) for word, _ in found]
        return Encoding(ids, [span for _, span in found], [word for word, _ in found])

    def detokenize(self, pieces: Iterable[str]) -> str:
        return "".join(pieces).removeprefix(" ")
