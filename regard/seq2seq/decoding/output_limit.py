"""How long an answer may become, and what else a search asks of a batch."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch

from regard.attention.core.options import check_int, check_number
from regard.seq2seq.batch import Batch, Tokens
from regard.seq2seq.decoding.bounds import MOST_TOKENS
from regard.seq2seq.decoding.errors import DecodingError


@runtime_checkable
class Sourced(Protocol):
    """A batch whose sources are tokens, so that they have lengths."""

    source: Tokens


@dataclass(frozen=True)
class OutputLimit:
    """How many tokens an answer may have, `END` among them: factor · source length + offset.

    >>> OutputLimit(factor=1.5, offset=2).allowed(5)
    9
    >>> OutputLimit(factor=1.5, offset=2, most=7).allowed(5)
    7

    Args:
        factor: How many for each token of the source.
        offset: How many more.
        most: No more than these, however long the source is.
    """

    factor: float = 2.0
    offset: int = 20
    most: int = MOST_TOKENS

    def __post_init__(self) -> None:
        needed = "a finite number, 0 or more"
        check_number("factor", self.factor, needed, lambda given: given >= 0)
        check_int("offset", self.offset, 0 if self.factor else 1, MOST_TOKENS)
        check_int("most", self.most, 1, MOST_TOKENS)

    def allowed(self, length: int) -> int:
        """For a source of this length; one token at least."""
        scaled = int(min(self.factor * length, self.most))  # inf has no integer
        return max(1, min(scaled + self.offset, self.most))


def limits(longest: OutputLimit | int, batch: Batch) -> list[int]:
    """For each sentence of the batch how many tokens its answer may have."""
    if isinstance(longest, int):
        longest = OutputLimit(0.0, longest)
    if not longest.factor:
        return [longest.allowed(0)] * len(batch.items)
    known = source_lengths(batch)
    if known is None:
        raise DecodingError(
            f"longest is {longest}, but a {type(batch).__name__} has no source to measure. "
            "Give a number of tokens instead."
        )
    return [longest.allowed(length) for length in known]


def source_lengths(batch: Batch) -> list[int] | None:
    """How many tokens each source has; None if the batch does not say."""
    return batch.source.lengths.tolist() if isinstance(batch, Sourced) else None


def source_width(batch: Batch) -> int | None:
    """How many columns the sources have with their padding."""
    return batch.source.ids.shape[1] if isinstance(batch, Sourced) else None


def device_of(batch: Batch) -> torch.device:
    """Where the first tokens must be."""
    return batch.source.ids.device if isinstance(batch, Sourced) else torch.device("cpu")
