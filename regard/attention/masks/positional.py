"""Masks of positions: how far a key is from the query."""

import torch
from jaxtyping import Int
from torch import Tensor

from regard.attention.core.axes import Allowed, Count
from regard.attention.core.options import check_int
from regard.attention.core.records import record, static
from regard.attention.masks.base import Mask, RemappedMask
from regard.attention.masks.pair_index import PairIndex


@record
class Causal(Mask):
    """No key after the query's own; where the lengths differ, the last query is at the last key.

    >>> Causal().dense(2, 4).int()
    tensor([[1, 1, 1, 0],
            [1, 1, 1, 1]], dtype=torch.int32)
    """

    def allows(self, pairs: PairIndex) -> Allowed:
        return pairs.column_index() <= pairs.query_positions()

    def span(self, pairs: PairIndex) -> tuple[Count, Count] | None:
        own = pairs.query_positions()
        return torch.zeros_like(own), own + 1

    def remap_keys(self, source: Int[Tensor, " column"], keys: int, fresh: bool = True) -> Mask:
        return self

    def check(self, shape: tuple[int, ...], device: torch.device) -> None:
        """Positions fit any number of queries and keys."""


@record
class Window(Mask):
    """Keys at most `before` positions before the query's own and at most `after` after it.

    >>> Window(1).dense(4, 4).int()
    tensor([[1, 1, 0, 0],
            [1, 1, 1, 0],
            [0, 1, 1, 1],
            [0, 0, 1, 1]], dtype=torch.int32)

    Args:
        before: How many positions back.
        after: How many positions ahead; as many as `before` unless given.
    """

    before: int = static()
    after: int = static()

    def __init__(self, before: int, after: int | None = None) -> None:
        self.before = check_int("Window's before", before)
        self.after = self.before if after is None else check_int("Window's after", after)

    def allows(self, pairs: PairIndex) -> Allowed:
        distance = pairs.column_index() - pairs.query_positions()
        return (distance >= -self.before) & (distance <= self.after)

    def span(self, pairs: PairIndex) -> tuple[Count, Count] | None:
        own = pairs.query_positions()
        return own - self.before, own + (self.after + 1)

    def remap_keys(self, source: Int[Tensor, " column"], keys: int, fresh: bool = True) -> Mask:
        return self

    def check(self, shape: tuple[int, ...], device: torch.device) -> None:
        """Positions fit any number of queries and keys."""


@record
class Prefix(Mask):
    """The first `size` keys, for every query; `Causal() | Prefix(size)` is a prefix language model.

    >>> (Causal() | Prefix(2)).dense(3, 3).int()
    tensor([[1, 1, 0],
            [1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)

    Args:
        size: How many keys, for all items; `Lengths` has one number for each item.
    """

    size: int = static()

    def __init__(self, size: int) -> None:
        self.size = check_int("Prefix's size", size)

    def allows(self, pairs: PairIndex) -> Allowed:
        return pairs.column_index() < self.size

    def span(self, pairs: PairIndex) -> tuple[Count, Count] | None:
        end = torch.tensor([[min(self.size, pairs.keys)]], device=pairs.device)
        return torch.zeros_like(end), end

    def remap_keys(self, source: Int[Tensor, " column"], keys: int, fresh: bool = True) -> Mask:
        return RemappedMask(self, source[None, :], keys, fresh)

    def check(self, shape: tuple[int, ...], device: torch.device) -> None:
        """A prefix fits any number of keys."""
