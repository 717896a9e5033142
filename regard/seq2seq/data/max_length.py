"""Maximum lengths in tokens: longer texts are truncated, skipped or refused.

A search makes about as many steps as a source has tokens, and each step attends to all of them:
time and the memory of the weights grow with the square of the length.
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
"""What to do with a text that is too long."""

Note = Callable[[str], None]

MOST_PER_CHARACTER = 4
"""No tokenizer makes more tokens of one character."""


class LengthWarning(UserWarning):
    """A text was truncated or skipped because it has too many tokens."""


@dataclass(frozen=True)
class MaxLength:
    """Maximum tokens of a source and a target, and what to do with longer ones.

    Args:
        source: Maximum tokens of a source, EOS not counted.
        target: The same of a target, given or decoded.
        too_long: "truncate" keeps the first tokens, "skip" gives no pair, "error" raises.
    """

    source: int
    target: int
    too_long: str = "truncate"

    def __post_init__(self) -> None:
        check_int("source", self.source, minimum=1)
        check_int("target", self.target, minimum=1)
        if self.too_long not in TOO_LONG:
            raise ConfigError(f"too_long is {self.too_long!r}. Choose {', '.join(TOO_LONG)}.")

    def __call__(self, codec: PairCodec, pair: Pair, note: Note) -> Pair | None:
        """The pair, the truncated pair, or None; `note` gets a message for each change."""
        for side, spans, most in self._over(codec, pair):
            message = f"line {pair.line}: the {side} has {len(spans)} tokens"
            if self.too_long == "error":
                option = "max_source_length" if side == "source" else "max_length"
                raise DataError(
                    f"{message}, but {option} is {most}. Raise it, or set too_long = "
                    "truncate or skip."
                )
            if self.too_long == "skip":
                note(f"{message}, more than {most}: the line is skipped.")
                return None
            note(f"{message}, more than {most}: only the first {most} are used.")
            pair = _truncated(pair, side, spans[most - 1][1])
        return pair

    def _over(
        self, codec: PairCodec, pair: Pair
    ) -> Iterator[tuple[str, list[tuple[int, int]], int]]:
        """Each side with too many tokens: its name, token spans and maximum."""
        sides: list[tuple[str, Tokenizer, str | None, int]] = [
            ("source", codec.source_tokenizer, pair.source, self.source),
            ("target", codec.target_tokenizer, pair.target, self.target),
        ]
        for side, tokenizer, text, most in sides:
            if text is None or MOST_PER_CHARACTER * len(text) <= most:
                continue  # short enough: most lines need not be tokenized twice
            spans = tokenizer.encode(text).spans
            if len(spans) > most:
                yield side, spans, most


@final
class BoundedPairs(Sequence[Pair]):
    """Pairs, each bounded when it is read."""

    def __init__(self, pairs: Sequence[Pair], bounded: Callable[[Pair], Pair]) -> None:
        self._pairs, self._bounded = pairs, bounded

    def __len__(self) -> int:
        return len(self._pairs)

    def check(self) -> None:
        """Bound each once, so that an error comes before anything is computed."""
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
