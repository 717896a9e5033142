"""Text as bare words: what is aligned, without the spaces between and without their case."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal, final

from tokenizers import Regex, pre_tokenizers

from regard.seq2seq.data.characters import most_frequent
from regard.seq2seq.data.normal import composed
from regard.seq2seq.data.text import Encoding, Normal, Text
from regard.seq2seq.examples import UNKNOWN, Span

Cut = Literal["punctuation", "spaces"]
"""Where a word ends: also before and after a sign, or at a space only."""

PATTERNS: dict[Cut, str] = {
    "punctuation": r"[\p{Han}\p{Hiragana}\p{Katakana}]"  # written without spaces: each by itself
    r"|[\p{L}\p{N}_][\p{L}\p{M}\p{N}_\u200c\u200d]*['’]?"  # l' is a word, as in French
    r"|[^\p{L}\p{N}_\s]",
    "spaces": r"\S+",
}
SPLITTERS = {
    cut: pre_tokenizers.Split(Regex(pattern), "isolated") for cut, pattern in PATTERNS.items()
}


@final
class Bare(Text):
    """Words as they are counted, not as they are written: "The" is "the".

    Put together again they are words with spaces between, which need not be the text.
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
    ) -> "Bare":
        """The most frequent words, so many that the vocabulary has at most `size` tokens."""
        empty, counts = cls([], normal, cut=cut, lower=lower), Counter[str]()
        for line in lines:
            counts.update(empty.words(composed(line)[0] if normal else line)[0])
        return cls(most_frequent(counts, size), normal, cut=cut, lower=lower)

    @classmethod
    def revived(cls, described: dict[str, Any]) -> "Bare":
        """What `described` told."""
        return cls(
            described["pieces"], described["normal"],
            cut=described["cut"], lower=described["lower"],
        )  # fmt: skip

    def described(self) -> dict[str, Any]:
        """All that it is, for JSON."""
        return {**super().described(), "cut": self._cut, "lower": self._lower}

    def words(self, text: str) -> tuple[list[str], list[Span]]:
        """Words with their places.

        >>> Bare([]).words("C'est ça!")
        (["c'", 'est', 'ça', '!'], [(0, 2), (2, 5), (6, 8), (8, 9)])
        """
        whole = text.encode("utf-8", "replace").decode()
        found = [
            (word, span)
            for word, span in SPLITTERS[self._cut].pre_tokenize_str(whole)
            if not word.isspace()
        ]
        words = [word.casefold() if self._lower else word for word, _ in found]
        return words, [span for _, span in found]

    def cut(self, text: str) -> Encoding:
        words, spans = self.words(text)
        return Encoding([self._numbers.get(word, UNKNOWN) for word in words], spans, words)

    def join(self, pieces: Iterable[str]) -> str:
        return " ".join(pieces)
