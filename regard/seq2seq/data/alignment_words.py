"""A word tokenizer for alignment: words without the spaces between and without their case."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal, final

from tokenizers import Regex, pre_tokenizers

from regard.attention.core.errors import OptionError, shown
from regard.seq2seq.batch import UNK, Span
from regard.seq2seq.data.characters import most_frequent
from regard.seq2seq.data.tokenizer import Encoding, Normal, Tokenizer

Cut = Literal["punctuation", "spaces"]
"""Where a word ends: at spaces and around punctuation, or at spaces only."""

PATTERNS: dict[Cut, str] = {
    "punctuation": r"[\p{Han}\p{Hiragana}\p{Katakana}]"  # no spaces: a character a word
    r"|[\p{L}\p{N}_][\p{L}\p{M}\p{N}_\u200c\u200d]*['’]?"  # l' is a word, as in French
    r"|[^\p{L}\p{N}_\s]",
    "spaces": r"\S+",
}
SPLITTERS = {
    cut: pre_tokenizers.Split(Regex(pattern), "isolated") for cut, pattern in PATTERNS.items()
}


@final
class AlignmentWords(Tokenizer):
    """Case-folded words without spaces: "The" is "the".

    Lossy: detokenizing gives words with spaces between, which need not be the text.
    """

    kind = "bare"

    def __init__(
        self,
        pieces: list[str],
        normal: Normal = None,
        *,
        cut: Cut = "punctuation",
        lower: bool = True,
    ) -> None:
        super().__init__(pieces, normal)
        if cut not in SPLITTERS or not isinstance(lower, bool):
            given = f"cut is {shown(cut)} and lower {shown(lower)}"
            raise OptionError(f"{given}. Give one of {', '.join(SPLITTERS)}, and True or False.")
        self._cut, self._lower = cut, lower

    @classmethod
    def build(
        cls,
        lines: Iterable[str],
        size: int | None = None,
        normal: Normal = None,
        *,
        cut: Cut = "punctuation",
        lower: bool = True,
    ) -> "AlignmentWords":
        """A vocabulary of the most frequent words, of at most `size` tokens."""
        empty, counts = cls([], normal, cut=cut, lower=lower), Counter[str]()
        for line in lines:
            counts.update(empty.words(cls.prepare(line, normal))[0])
        return cls(most_frequent(counts, size), normal, cut=cut, lower=lower)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "AlignmentWords":
        """The inverse of `to_dict`."""
        return cls(
            fields["pieces"], fields["normal"],
            cut=fields["cut"], lower=fields["lower"],
        )  # fmt: skip

    def to_dict(self) -> dict[str, Any]:
        """All fields, for JSON."""
        return {**super().to_dict(), "cut": self._cut, "lower": self._lower}

    def words(self, text: str) -> tuple[list[str], list[Span]]:
        """Words with their spans.

        >>> AlignmentWords([]).words("C'est ça!")
        (["c'", 'est', 'ça', '!'], [(0, 2), (2, 5), (6, 8), (8, 9)])
        """
        encodable = text.encode("utf-8", "replace").decode()
        found = [
            (word, span)
            for word, span in SPLITTERS[self._cut].pre_tokenize_str(encodable)
            if not word.isspace()
        ]
        words = [word.casefold() if self._lower else word for word, _ in found]
        return words, [span for _, span in found]

    def tokenize(self, text: str) -> Encoding:
        words, spans = self.words(text)
        return Encoding([self._numbers.get(word, UNK) for word in words], spans, words)

    def detokenize(self, pieces: Iterable[str]) -> str:
        return " ".join(pieces)
