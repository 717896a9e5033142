"""Text as words."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, final

from tokenizers import Regex, pre_tokenizers

from regard.seq2seq.batch import UNK, Span
from regard.seq2seq.data.characters import most_frequent
from regard.seq2seq.data.tokenizer import Encoding, Normal, Tokenizer

PATTERN = (
    r" ?[\p{L}\p{N}_][\p{L}\p{M}\p{N}_\u200c\u200d]*"  # a word, with its marks and joiners
    r"| ?[^\p{L}\p{N}_\s]+"  # punctuation, symbols, emoji
    r"|\s+(?!\S)|\s+"  # more space than one between two words
)
"""A word takes the space before it along, so that words put together are the text again."""

splitter = pre_tokenizers.Split(Regex(PATTERN), "isolated")


def words_of(text: str) -> list[tuple[str, Span]]:
    """Words with their places. The first gets a space before it, so that it is as any other.

    >>> words_of("Ah, so!")
    [(' Ah', (0, 2)), (',', (2, 3)), (' so', (3, 6)), ('!', (6, 7))]
    """
    if not text:
        return []
    return [
        (word, without_space(span)) for word, span in splitter.pre_tokenize_str(with_space(text))
    ]


def with_space(text: str) -> str:
    """The text with a space before it, and `?` for what is half a character."""
    return f" {text}".encode("utf-8", "replace").decode()


def without_space(span: Span) -> Span:
    """A place in what `with_space` gave, as one in the text itself."""
    return max(0, span[0] - 1), span[1] - 1


@final
class Words(Tokenizer):
    """Words and runs of punctuation are tokens. What was not seen in building is `UNKNOWN`."""

    kind = "words"
    unknown = " ⁇"

    @classmethod
    def build(cls, lines: Iterable[str], size: int | None = None, normal: Normal = None) -> "Words":
        """The most frequent words, so many that the vocabulary has at most `size` tokens."""
        counts: Counter[str] = Counter()
        for line in lines:
            counts.update(word for word, _ in words_of(cls.prepare(line, normal)))
        return cls(most_frequent(counts, size), normal)

    @classmethod
    def from_dict(cls, described: dict[str, Any]) -> "Words":
        """What `described` told."""
        return cls(described["pieces"], described["normal"])

    def tokenize(self, text: str) -> Encoding:
        found = words_of(text)
        ids = [self._numbers.get(word, UNK) for word, _ in found]
        return Encoding(ids, [span for _, span in found], [word for word, _ in found])

    def detokenize(self, pieces: Iterable[str]) -> str:
        return "".join(pieces).removeprefix(" ")
