"""Sequences without their padding, as a recurrent layer goes through them."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor


class PackedSequence:
    """All first tokens, then all second ones, and so on: as many rows as there are tokens.

    The longest sequences come first, so that those which have a step are the first of those which
    had the step before.

    Args:
        lengths: How many tokens each sequence has.
        length: To how many they are padded.
    """

    def __init__(self, lengths: Int[Tensor, " batch"], length: int) -> None:
        order = lengths.argsort(descending=True, stable=True)
        own, steps = lengths[order], torch.arange(length, device=lengths.device)[:, None]
        real = steps < own
        self.shape = len(lengths), length
        self.counts: list[int] = [count for count in real.sum(1).tolist() if count]
        self.ranks = order.argsort()
        """Which of the sequences, the longest first, each one is."""
        self._places = (order * length + steps)[real]
        rows = real.flatten().cumsum(0).view_as(real) - 1
        self._turned = rows.gather(0, (own - 1 - steps).clamp(min=0))[real]

    def packed(self, padded: Int[Tensor, "batch length"]) -> Int[Tensor, " row"]:
        """The tokens without padding."""
        return padded.flatten()[self._places]

    def padded(self, rows: Float[Tensor, "row size"]) -> Float[Tensor, "batch length size"]:
        """Rows where their tokens are, and zeros in the padding."""
        batch, length = self.shape
        zeros = rows.new_zeros(batch * length, rows.shape[1])
        return zeros.index_copy(0, self._places, rows).unflatten(0, (batch, length))

    def reversed(self, rows: Float[Tensor, "row size"]) -> Float[Tensor, "row size"]:
        """The same of sequences that begin at their end; turned again, they are as they were."""
        found: Tensor = _Reversed.apply(rows, self._turned)  # type: ignore[no-untyped-call]
        return found


class _Reversed(torch.autograd.Function):
    """Rows in an order that is its own inverse, so that the way back is the way forth."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, order: Tensor) -> Tensor:
        ctx.order = order
        return rows.index_select(0, order)

    @staticmethod
    def backward(ctx: Any, *gradient: Tensor) -> tuple[Tensor, None]:
        return _Reversed.apply(gradient[0], ctx.order), None  # type: ignore[no-untyped-call]
