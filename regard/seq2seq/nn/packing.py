"""Sequences without their padding, time-major, as a recurrent layer runs over them."""

from typing import Any

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor


class Packing:
    """Where each token of a padded batch goes in a packed one, as `pack_padded_sequence` has it.

    Packed rows are all first tokens, then all second ones, and so on. The longest sequences come
    first, so that those with a token at one step are the first of those at the step before.

    Args:
        lengths: How many tokens each sequence has.
        length: To how many they are padded.
    """

    def __init__(self, lengths: Int[Tensor, " batch"], length: int) -> None:
        order = lengths.argsort(descending=True, stable=True)
        sorted_lengths, steps = lengths[order], torch.arange(length, device=lengths.device)[:, None]
        real = steps < sorted_lengths
        self.lengths, self.length = lengths, length
        self.batch_sizes: list[int] = [count for count in real.sum(1).tolist() if count]
        """How many sequences have a token at each step."""
        self.unsorted_indices = order.argsort()
        """Where each sequence is among those sorted by length."""
        self._flat_positions = (order * length + steps)[real]
        rows = real.flatten().cumsum(0).view_as(real) - 1
        self._reversed_rows = rows.gather(0, (sorted_lengths - 1 - steps).clamp(min=0))[real]

    def pack(self, padded: Shaped[Tensor, "batch length *size"]) -> Shaped[Tensor, "row *size"]:
        """The rows that are not padding."""
        return padded.flatten(0, 1)[self._flat_positions]

    def pad(self, rows: Float[Tensor, "row size"]) -> Float[Tensor, "batch length size"]:
        """Rows at their positions, and zeros in the padding."""
        shape = len(self.lengths), self.length
        zeros = rows.new_zeros(shape[0] * shape[1], rows.shape[1])
        return zeros.index_copy(0, self._flat_positions, rows).unflatten(0, shape)

    def reverse(self, rows: Float[Tensor, "row size"]) -> Float[Tensor, "row size"]:
        """Each sequence from its end to its start; the inverse of itself."""
        outputs: Tensor = _Permute.apply(rows, self._reversed_rows)  # type: ignore[no-untyped-call]
        return outputs


class _Permute(torch.autograd.Function):
    """Rows by a permutation that is its own inverse, so that backward is forward."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, order: Tensor) -> Tensor:
        ctx.order = order
        return rows.index_select(0, order)

    @staticmethod
    def backward(ctx: Any, *gradient: Tensor) -> tuple[Tensor, None]:
        return _Permute.apply(gradient[0], ctx.order), None  # type: ignore[no-untyped-call]
