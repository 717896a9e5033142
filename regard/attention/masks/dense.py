"""A mask given as a tensor."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from regard.attention.core.axes import Allowed
from regard.attention.core.errors import MaskError, shown
from regard.attention.core.records import record
from regard.attention.core.validation import broadcasts_to
from regard.attention.masks.base import Mask, RemappedMask, check_device
from regard.attention.masks.pair_index import PairIndex


@record
class Dense(Mask):
    """A boolean tensor, True = may read.

    >>> Dense(torch.tensor([[True, False, True]])).dense(2, 3).int()
    tensor([[1, 0, 1],
            [1, 0, 1]], dtype=torch.int32)

    Args:
        allowed: Shape `(*batch, query, key)`; an axis of 1 broadcasts.
    """

    allowed: Bool[Tensor, "*batch query key"]

    def __init__(self, allowed: Tensor) -> None:
        if not isinstance(allowed, Tensor) or allowed.dtype != torch.bool:
            given = allowed.dtype if isinstance(allowed, Tensor) else shown(allowed)
            raise MaskError(
                f"a mask is a boolean tensor, True = may read; this one is {given}. Pass numbers "
                "that are added to the scores as bias=…, 0/1 as mask.bool(), and lengths as "
                "masks.Lengths(lengths)."
            )
        if allowed.ndim < 2:
            raise MaskError(
                f"a mask has shape (*batch, query, key); this one has {tuple(allowed.shape)}. "
                "Add the axes: mask[None, :] for keys, or masks.Lengths(lengths) for padding."
            )
        self.allowed = allowed

    def allows(self, pairs: PairIndex) -> Allowed:
        allowed = self.allowed
        if pairs.rows is not None and allowed.shape[-2] != 1:
            allowed = allowed[..., pairs.rows, :]
        return pairs.take_columns(allowed)

    def remap_keys(self, source: Int[Tensor, " column"], keys: int, fresh: bool = True) -> Mask:
        return RemappedMask(self, source[None, :], keys, fresh)

    def check(self, shape: tuple[int, ...], device: torch.device) -> None:
        own = tuple(self.allowed.shape)
        check_device(self, self.allowed, device)
        if len(own) != len(shape):
            padding = " For padding, masks.Lengths(lengths) takes one number for each item."
            raise MaskError(
                f"the mask has {len(own)} axes, {own}, but these queries and keys need "
                f"{len(shape)}: {shape}, or 1 to broadcast.{padding}"
            )
        if not broadcasts_to(own, shape):
            raise MaskError(
                f"the mask has shape {own} but the batch, queries and keys are {shape}. "
                "Each axis must have that size, or 1 to broadcast."
            )


def as_mask(mask: Mask | Tensor | None) -> Mask | None:
    """A mask as it is; a boolean tensor wrapped."""
    if mask is None or isinstance(mask, Mask):
        return mask
    if isinstance(mask, Tensor):
        return Dense(mask)
    raise MaskError(
        f"{shown(mask)} is not a mask. Pass a boolean tensor, True = may read, or one of "
        "regard.masks, such as masks.Causal() & masks.Lengths(lengths)."
    )
