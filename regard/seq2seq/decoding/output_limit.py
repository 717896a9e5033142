"""How long an output may become, and what else a search asks of a batch and of a state."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Int
from torch import Tensor

from regard.attention.core.options import check_int, check_number
from regard.seq2seq.batch import Batch
from regard.seq2seq.decoding.bounds import MAX_TOKENS
from regard.seq2seq.decoding.errors import DecodingError
from regard.seq2seq.protocols import StepperState


@runtime_checkable
class HasLengths(Protocol):
    """A source whose sequences have lengths: tokens, frames, patches."""

    lengths: Int[Tensor, " batch"]


@runtime_checkable
class HasSource(Protocol):
    """A batch with such a source."""

    source: HasLengths


@runtime_checkable
class HasSourceLengths(Protocol):
    """A state that knows how many positions of each source there are to attend to.

    That may be fewer than the source has: an encoder may shorten it.
    """

    @property
    def source_lengths(self) -> Int[Tensor, " sentence"] | None: ...


@dataclass(frozen=True)
class OutputLimit:
    """How many tokens an output may have, EOS included: factor · source length + offset.

    >>> OutputLimit(factor=1.5, offset=2).allowed(5)
    9
    >>> OutputLimit(factor=1.5, offset=2, maximum=7).allowed(5)
    7

    Args:
        factor: How many for each position of the source.
        offset: How many more.
        maximum: No more than these, however long the source is.
    """

    factor: float = 2.0
    offset: int = 20
    maximum: int = MAX_TOKENS

    def __post_init__(self) -> None:
        needed = "a finite number, 0 or more"
        check_number("factor", self.factor, needed, lambda given: given >= 0)
        check_int("offset", self.offset, 0 if self.factor else 1, MAX_TOKENS)
        check_int("maximum", self.maximum, 1, MAX_TOKENS)

    def allowed(self, length: int) -> int:
        """For a source of this length; one token at least."""
        scaled = int(min(self.factor * length, self.maximum))  # inf has no integer
        return max(1, min(scaled + self.offset, self.maximum))


LengthLimit = OutputLimit | int
"""How many tokens an output may have, EOS included: by its source's length, or a number."""


def check_max_length(max_length: LengthLimit) -> None:
    """Raise if a number is out of range."""
    if not isinstance(max_length, OutputLimit):
        check_int("max_length", max_length, 1, MAX_TOKENS)


def max_lengths(max_length: LengthLimit, batch: Batch) -> list[int]:
    """How many tokens the output of each sentence may have."""
    if isinstance(max_length, int):
        max_length = OutputLimit(0.0, max_length)
    if not max_length.factor:
        return [max_length.allowed(0)] * len(batch.items)
    if not isinstance(batch, HasSource):
        raise DecodingError(
            f"max_length is {max_length}, but a {type(batch).__name__} has no source to measure. "
            "Give a number of tokens instead."
        )
    return [max_length.allowed(length) for length in batch.source.lengths.tolist()]


def encoded_lengths(state: StepperState) -> list[int] | None:
    """How many columns of the weights are each sentence's own; None if the state does not say."""
    lengths = state.source_lengths if isinstance(state, HasSourceLengths) else None
    return None if lengths is None else lengths.tolist()


def device_of(batch: Batch) -> torch.device:
    """Where the first tokens must be."""
    return batch.source.lengths.device if isinstance(batch, HasSource) else torch.device("cpu")
