"""Texts no longer than a model is asked about: measured in tokens, truncated at a token's end.

A search makes about as many steps as a source has tokens, and each step reads all of them: the time
grows with the square of the length, and so does the memory that the weights take.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import final, overload

from regard.attention.core.options import check_int
from regard.seq2seq.data.formats import Pair
from regard.seq2seq.data.pair_codec import PairCodec
from regard.seq2seq.data.tokenizer import Tokenizer
from regard.seq2seq.errors import ConfigError, DataError

TOO_LONG = ("truncate", "skip", "error")
"""What may become of a text that is too long."""

Note = Callable[[str], None]

MOST_PER_CHARACTER = 4
"""No tokenizer makes more tokens of a character."""


class LengthWarning(UserWarning):
    """A text was truncated or skipped because it has too many tokens."""


@dataclass(frozen=True)
class MaxLength:
    """How many tokens a source and a target may have, and what becomes of those with more.

    Args:
        source: The most tokens of a source, its end not counted.
        target: The same of a target, given or decoded.
        too_long: "truncate" keeps the first tokens, "skip" gives no pair, "error" raises.
    """

    source: int
    target: int
    too_long: str = "truncate"

    def __post_init__(self) -> None:
        check_int("source", self.source, least=1)
        check_int("target", self.target, least=1)
        if self.too_long not in TOO_LONG:
            raise ConfigError(f"too_long is {self.too_long!r}. Choose {', '.join(TOO_LONG)}.")

    def __call__(self, codec: PairCodec, pair: Pair, note: Note) -> Pair | None:
        """The pair itself, what is kept of it, or None; `note` hears what was left out."""
        for side, spans, most in self._over(codec, pair):
            told = f"line {pair.line}: the {side} has {len(spans)} tokens"
            if self.too_long == "error":
                option = "max_source_length" if side == "source" else "max_length"
                raise DataError(
                    f"{told}, but {option} is {most}. Raise it, or choose what becomes of such "
                    "lines: too_long = truncate or skip."
                )
            if self.too_long == "skip":
                note(f"{told}, more than {most}: the line is skipped.")
                return None
            note(f"{told}, more than {most}: only its first {most} are read.")
            pair = _truncated(pair, side, spans[most - 1][1])
        return pair

    def _over(
        self, codec: PairCodec, pair: Pair
    ) -> Iterator[tuple[str, list[tuple[int, int]], int]]:
        """Each side with too many tokens: where they lie, and how many there may be."""
        sides: list[tuple[str, Tokenizer, str | None, int]] = [
            ("source", codec.source_text, pair.source, self.source),
            ("target", codec.target_text, pair.target, self.target),
        ]
        for side, tokenizer, text, most in sides:
            if text is None or MOST_PER_CHARACTER * len(text) <= most:
                continue  # surely short enough: most lines need not be tokenized twice
            spans = tokenizer.encode(text).spans
            if len(spans) > most:
                yield side, spans, most


@final
class BoundedPairs(Sequence[Pair]):
    """Pairs as far as they may be read; each is bounded when it is asked for."""

    def __init__(self, pairs: Sequence[Pair], bounded: Callable[[Pair], Pair]) -> None:
        self._pairs, self._bounded = pairs, bounded

    def __len__(self) -> int:
        return len(self._pairs)

    def check(self) -> None:
        """Look at each once: raise for what may not be read before anything is computed."""
        for pair in self._pairs:
            self._bounded(pair)

    @overload
    def __getitem__(self, number: int) -> Pair: ...
    @overload
    def __getitem__(self, number: slice) -> list[Pair]: ...
    def __getitem__(self, number: int | slice) -> Pair | list[Pair]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        return self._bounded(self._pairs[number])


def _truncated(pair: Pair, side: str, end: int) -> Pair:
    if side == "source":
        return replace(pair, source=pair.source[:end])
    return replace(pair, target=(pair.target or "")[:end])
