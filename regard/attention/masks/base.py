"""Masks form an algebra: which query may read which key, closed under `& | ~`.

A mask is cheap: a rule over positions, with a few numbers. It becomes a tensor only where a kernel
needs one, and only for the pairs that the kernel computes.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn import functional

from regard.attention.core.axes import Allowed, Count
from regard.attention.core.errors import DeviceError, MaskError, shown
from regard.attention.core.records import record, replace, static, tree_map
from regard.attention.core.validation import broadcasts_to
from regard.attention.masks.pair_index import PairIndex


class Mask(ABC):
    """Which query may read which key: True = may read. Combine masks with `&`, `|` and `~`.

    >>> from regard import masks
    >>> (masks.Causal() | masks.Prefix(2)).dense(4, 4).int()
    tensor([[1, 1, 0, 0],
            [1, 1, 0, 0],
            [1, 1, 1, 0],
            [1, 1, 1, 1]], dtype=torch.int32)
    """

    __slots__ = ()

    @abstractmethod
    def allows(self, pairs: PairIndex) -> Allowed:
        """Which of these pairs are allowed: all pairs, some rows, some columns, or windows."""

    @abstractmethod
    def remap_keys(self, source: Int[Tensor, " column"], keys: int, fresh: bool = True) -> "Mask":
        """The mask after a write or an erasure: column `n` was column `source[n]` of `keys`.

        A source of −1 is a new key, which this mask allows if `fresh`. Masks of positions
        (`Causal`, `Window`) stay as they are; masks of certain keys follow these.
        """

    def dense(
        self, queries: int, keys: int, device: torch.device | str = "cpu"
    ) -> Bool[Tensor, "*batch query key"]:
        """The mask as a tensor, for two lengths; the last query is at the last key."""
        for name, count in (("queries", queries), ("keys", keys)):
            if not isinstance(count, int | torch.SymInt) or count < 0:
                raise MaskError(
                    f"dense shows a mask for two lengths, but {name} are {shown(count)}. "
                    "Give numbers: mask.dense(queries.shape[-2], keys.shape[-2])."
                )
        try:
            allowed = self.allows(PairIndex(queries, keys, torch.device(device)))
            return allowed.expand(*allowed.shape[:-2], queries, keys)
        except (IndexError, RuntimeError) as error:
            raise MaskError(
                f"this mask does not fit {queries} queries and {keys} keys: {error}. "
                "Give the lengths for which it was made."
            ) from error

    def span(self, pairs: PairIndex) -> tuple[Count, Count] | None:
        """The first key that each query may read, and the one after the last.

        None where that needs a look at each pair, or where keys in between are masked.
        """
        return None

    def visible_counts(self, pairs: PairIndex) -> Count:
        """How many keys each query may read."""
        span = self.span(pairs) if pairs.columns is None else None
        if span is not None:
            first, end = (index.clamp(0, pairs.keys) for index in span)
            return (end - first).clamp(min=0)
        allowed = self.allows(pairs)
        return allowed.expand(*allowed.shape[:-1], pairs.width).sum(-1, keepdim=True)

    @abstractmethod
    def check(self, shape: tuple[int, ...], device: torch.device) -> None:
        """Raise unless the mask fits `(*batch, query, key)` on this device."""

    def map(self, change: Callable[[Tensor], Tensor]) -> "Mask":
        """The mask with `change` applied to each tensor that it holds."""
        return tree_map(self, change)

    def to(self, device: torch.device | str) -> "Mask":
        """The mask with its tensors on another device."""
        return self.map(lambda tensor: tensor.to(device))

    def heads(self, axes: int = 1) -> "Mask":
        """The mask for tensors that have `axes` axes of heads before the last two."""
        return self.map(lambda t: t.reshape(*t.shape[:-2], *([1] * axes), *t.shape[-2:]))

    def __and__(self, other: "Mask") -> "Mask":
        return And(self, _as_operand(other, "&"))

    def __rand__(self, other: "Mask") -> "Mask":
        return And(_as_operand(other, "&"), self)

    def __or__(self, other: "Mask") -> "Mask":
        return Or(self, _as_operand(other, "|"))

    def __ror__(self, other: "Mask") -> "Mask":
        return Or(_as_operand(other, "|"), self)

    def __bool__(self) -> bool:
        raise MaskError(
            "a mask is neither true nor false as a whole, so `and`, `or` and `not` do not combine "
            "masks. Use & | ~, and compare with None: mask is not None."
        )

    def __invert__(self) -> "Mask":
        return Not(self)


class _Combined(Mask):
    """Two masks, each of which follows the keys and is checked by itself."""

    __slots__ = ()
    left: Mask
    right: Mask

    def remap_keys(self, source: Int[Tensor, " column"], keys: int, fresh: bool = True) -> Mask:
        left, right = (mask.remap_keys(source, keys, fresh) for mask in (self.left, self.right))
        return replace(self, left=left, right=right)

    def check(self, shape: tuple[int, ...], device: torch.device) -> None:
        self.left.check(shape, device)
        self.right.check(shape, device)


@record
class And(_Combined):
    """Allowed by both masks."""

    left: Mask
    right: Mask

    def allows(self, pairs: PairIndex) -> Allowed:
        return self.left.allows(pairs) & self.right.allows(pairs)

    def span(self, pairs: PairIndex) -> tuple[Count, Count] | None:
        left, right = self.left.span(pairs), self.right.span(pairs)
        if left is None or right is None:
            return None
        return torch.maximum(left[0], right[0]), torch.minimum(left[1], right[1])


@record
class Or(_Combined):
    """Allowed by one of two masks, or by both."""

    left: Mask
    right: Mask

    def allows(self, pairs: PairIndex) -> Allowed:
        return self.left.allows(pairs) | self.right.allows(pairs)


@record
class Not(Mask):
    """Allowed where another mask is not."""

    inner: Mask

    def allows(self, pairs: PairIndex) -> Allowed:
        return ~self.inner.allows(pairs)

    def remap_keys(self, source: Int[Tensor, " column"], keys: int, fresh: bool = True) -> Mask:
        # New keys stay allowed: the inner mask must not allow them.
        return Not(self.inner.remap_keys(source, keys, not fresh))

    def check(self, shape: tuple[int, ...], device: torch.device) -> None:
        self.inner.check(shape, device)


@record
class RemappedMask(Mask):
    """A mask of certain keys, after these have moved in the memory."""

    inner: Mask
    source: Int[Tensor, "1 column"]
    keys: int = static()
    fresh: bool = static()

    def allows(self, pairs: PairIndex) -> Allowed:
        source = self.source.flatten()
        source = source if pairs.columns is None else source[pairs.columns]
        new = pairs.at(source).column_index() < 0
        if not self.keys:  # there were no keys: all are new
            return torch.full_like(new, self.fresh)
        allowed = self.inner.allows(replace(pairs, keys=self.keys, columns=source.clamp(min=0)))
        return allowed | new if self.fresh else allowed & ~new

    def remap_keys(self, source: Int[Tensor, " column"], keys: int, fresh: bool = True) -> Mask:
        # One map from the first keys to the last, however often they have moved.
        first = functional.pad(self.source.flatten(), (0, 1), value=-1)
        return RemappedMask(self.inner, first[source][None, :], self.keys, fresh)

    def check(self, shape: tuple[int, ...], device: torch.device) -> None:
        check_device(self, self.source, device)
        if (own := self.source.shape[-1]) != shape[-1]:
            raise MaskError(
                f"this memory's mask is for {own} keys but there are {shape[-1]}. "
                "Prepare the keys again, with a mask for them."
            )
        self.inner.check((*shape[:-1], self.keys), device)


def check_device(mask: Mask, tensor: Tensor, device: torch.device) -> None:
    """Raise unless a mask's tensor is on the queries' device."""
    if tensor.device != device:
        raise DeviceError(
            f"the mask {type(mask).__name__} is on {tensor.device} but the queries are on "
            f"{device}. Move it: mask.to({str(device)!r})."
        )


def check_batch(mask: Mask, tensor: Tensor, shape: tuple[int, ...], hint: str) -> None:
    """Raise unless a mask's tensor broadcasts to the batch axes of `shape`."""
    batch, own = shape[:-2], tuple(tensor.shape[:-2])
    if not broadcasts_to(own, batch):
        raise MaskError(
            f"the mask {type(mask).__name__} is for a batch of {own} but the batch is {batch}. "
            f"{hint}"
        )


def as_integers(name: str, given: Tensor | Sequence[Any]) -> Tensor:
    """A tensor of integers; raise if that is not what was given."""
    try:
        tensor = torch.as_tensor(given)
    except (TypeError, ValueError, RuntimeError):
        raise MaskError(
            f"{name} are {shown(given)}. Give whole numbers: a list of equal rows, or a tensor."
        ) from None
    tensor = tensor if tensor.numel() else tensor.long()
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise MaskError(
            f"{name} are {tensor.dtype} of shape {tuple(tensor.shape)}. Give whole numbers, and "
            "booleans as masks.Dense(tensor), (*batch, query, key)."
        )
    return tensor


def _as_operand(other: object, sign: str) -> Mask:
    if isinstance(other, Mask):
        return other
    raise MaskError(
        f"a mask {sign} {type(other).__name__} has no meaning. "
        "Wrap a boolean tensor first: masks.Dense(tensor)."
    )
