"""Padding: the visible keys of each item come first."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from regard.attention.core.axes import Allowed, Count
from regard.attention.core.errors import MaskError
from regard.attention.core.records import record
from regard.attention.core.tracing import is_concrete
from regard.attention.masks.base import Mask, RemappedMask, as_integers, check_batch, check_device
from regard.attention.masks.pair_index import PairIndex


@record
class Lengths(Mask):
    """Mask padding: of each item of the batch, only the first `lengths` keys may be read.

    >>> Lengths([1, 3]).dense(1, 3).int()
    tensor([[[1, 0, 0]],
    <BLANKLINE>
            [[1, 1, 1]]], dtype=torch.int32)

    Args:
        lengths: One integer for each item, shape `(*batch,)`; 0 masks the whole item.
    """

    limits: Int[Tensor, "*batch 1 1"]

    def __init__(self, lengths: Tensor | Sequence[Any]) -> None:
        lengths = as_integers("lengths", lengths)
        if is_concrete(lengths) and lengths.numel() and int(lengths.min()) < 0:
            raise MaskError(
                f"lengths go down to {int(lengths.min())}. "
                "Give the number of keys that may be read, 0 or more."
            )
        self.limits = lengths[..., None, None]

    def allows(self, pairs: PairIndex) -> Allowed:
        return pairs.column_index() < self.limits

    def span(self, pairs: PairIndex) -> tuple[Count, Count] | None:
        limits = self.limits.long()  # int8 cannot be compared with a thousand keys
        return torch.zeros_like(limits), limits

    def remap_keys(self, source: Int[Tensor, " column"], keys: int, fresh: bool = True) -> Mask:
        return RemappedMask(self, source[None, :], keys, fresh)

    def check(self, shape: tuple[int, ...], device: torch.device) -> None:
        check_device(self, self.limits, device)
        hint = f"Give one length for each item: shape {shape[:-2]}, or 1 to broadcast."
        check_batch(self, self.limits, shape, hint)
        if not is_concrete(self.limits) or not self.limits.numel():
            return
        if (longest := int(self.limits.max())) > shape[-1]:
            raise MaskError(
                f"lengths go up to {longest} but there are {shape[-1]} keys. "
                "Pass the lengths of these keys, or pad the keys further."
            )
