"""A memory as C reads it for one query an item, packed once and cached for every step."""

from itertools import takewhile

from torch import Tensor

from regard.attention.core.axes import Allowed, Prepared, Values
from regard.attention.kernels.comparison import AdditiveComparison, DotComparison
from regard.attention.masks import Mask
from regard.native.signatures import StepMemory

SingleQueryComparison = DotComparison | AdditiveComparison
"""The scores that C computes for one query an item."""


class PackedMemory:
    """Addresses and sizes of keys, values and mask, and the tensors that they were taken from.

    Args:
        comparison: One query an item against the keys.
        values: What is read.
        mask: The view's mask, by which a later read is known to have the same.
        allowed: That mask as a tensor; None if nothing is masked.
        cached: What the additive kernel caches of the keys.
    """

    def __init__(
        self, comparison: SingleQueryComparison, values: Values,
        mask: Mask | None, allowed: Allowed | None, cached: Prepared,
    ) -> None:  # fmt: skip
        self.kind, self.keys, self.values, self.mask = (
            type(comparison), comparison.keys, values, mask,
        )  # fmt: skip
        self.queries_shape, self.shape = comparison.queries.shape, comparison.shape
        self.keys_address, self.values_address = self.keys.data_ptr(), values.data_ptr()
        self.keys_numel, self.values_numel = self.keys.numel(), values.numel()
        self.context_shape = (*self.shape[:-1], values.shape[-1])
        self.shares_v = (
            isinstance(comparison, AdditiveComparison)
            and comparison.v.numel() == comparison.v.shape[-1]
        )
        keys, max_abs = keys_in_c(comparison, cached), cached.get("max|k|")
        allowed = None if allowed is None else allowed.expand(self.shape).contiguous()
        self.holds = keys, allowed, max_abs  # C has their addresses, which must stay theirs
        items = self.shape[:-2].numel()
        self.work = self.shape.numel() * (keys.shape[-1] + values.shape[-1])
        self.memory = StepMemory(
            keys=keys.data_ptr(),
            values=values.data_ptr(),
            max_abs=None if max_abs is None else max_abs.data_ptr(),
            allowed=None if allowed is None else allowed.data_ptr(),
            items=items,
            count=self.shape[-1],
            size=comparison.queries.shape[-1],
            width=keys.shape[-1],
            value_size=values.shape[-1],
            items_per_keys=items // keys.shape[:-2].numel(),
            items_per_values=items // values.shape[:-2].numel(),
            items_per_v=items if self.shares_v else 1,
        )

    def contiguous_v(self, comparison: AdditiveComparison) -> Tensor:
        """The vector v of additive scores: one for all, or one for each query."""
        v = comparison.v
        return v if self.shares_v else v.expand_as(comparison.queries).contiguous()

    def serves(self, comparison: SingleQueryComparison, values: Values, mask: Mask | None) -> bool:
        """Is this the memory that was packed, read by queries of the same shape?"""
        return (
            type(comparison) is self.kind
            and comparison.keys is self.keys
            and values is self.values
            and mask is self.mask
            and comparison.queries.shape == self.queries_shape
            and self.is_valid()
        )

    def is_valid(self) -> bool:
        """Are keys and values still at their addresses, as many, and contiguous?

        Not after `values.data = …`, `values.share_memory_()` and the like.
        """
        keys, values = self.keys, self.values
        return (
            keys.data_ptr() == self.keys_address
            and values.data_ptr() == self.values_address
            and keys.numel() == self.keys_numel
            and values.numel() == self.values_numel
            and keys.is_contiguous()
            and values.is_contiguous()
        )


def keys_in_c(comparison: SingleQueryComparison, cached: Prepared) -> Tensor:
    """The keys as C compares them: those of additive scores are e^2k."""
    return comparison.keys if isinstance(comparison, DotComparison) else cached["e^2k"]


def is_shared_in_order(queries: Tensor, tensor: Tensor) -> bool:
    """Has each item its own, or do neighbours share: the same batch, but for ones at its end?"""
    batch, own = queries.shape[:-2], tensor.shape[:-2]
    same = len([*takewhile(lambda pair: pair[0] == pair[1], zip(batch, own, strict=True))])
    return all(size == 1 for size in own[same:])
