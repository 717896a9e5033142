"""Masks that speak of places alone: how far a key stands from the query."""

import torch
from jaxtyping import Int
from torch import Tensor

from regard.attention.axes import Allowed, Count
from regard.attention.masks.base import Mask, Rewired
from regard.attention.masks.pairs import Pairs
from regard.attention.options import whole
from regard.attention.records import record, static


@record
class Causal(Mask):
    """No key after the query's own; where the lengths differ, the last query sees the last key.

    >>> Causal().dense(2, 4).int()
    tensor([[1, 1, 1, 0],
            [1, 1, 1, 1]], dtype=torch.int32)
    """

    def allows(self, pairs: Pairs) -> Allowed:
        return pairs.column_index() <= pairs.standing()

    def span(self, pairs: Pairs) -> tuple[Count, Count] | None:
        own = pairs.standing()
        return torch.zeros_like(own), own + 1

    def rewire(self, source: Int[Tensor, " column"], keys: int, fresh: bool = True) -> Mask:
        return self

    def check(self, shape: tuple[int, ...], device: torch.device) -> None:
        """Places fit any number of queries and keys."""


@record
class Window(Mask):
    """Keys at most `before` places before the query's own and at most `after` places after it.

    >>> Window(1).dense(4, 4).int()
    tensor([[1, 1, 0, 0],
            [1, 1, 1, 0],
            [0, 1, 1, 1],
            [0, 0, 1, 1]], dtype=torch.int32)

    Args:
        before: How many places back.
        after: How many places on; as many as `before` unless given.
    """

    before: int = static()
    after: int = static()

    def __init__(self, before: int, after: int | None = None) -> None:
        self.before = whole("Window's before", before)
        self.after = self.before if after is None else whole("Window's after", after)

    def allows(self, pairs: Pairs) -> Allowed:
        distance = pairs.column_index() - pairs.standing()
        return (distance >= -self.before) & (distance <= self.after)

    def span(self, pairs: Pairs) -> tuple[Count, Count] | None:
        own = pairs.standing()
        return own - self.before, own + (self.after + 1)

    def rewire(self, source: Int[Tensor, " column"], keys: int, fresh: bool = True) -> Mask:
        return self

    def check(self, shape: tuple[int, ...], device: torch.device) -> None:
        """Places fit any number of queries and keys."""


@record
class Prefix(Mask):
    """The first `size` keys, for every query; `Causal() | Prefix(size)` is a prefix language model.

    >>> (Causal() | Prefix(2)).dense(3, 3).int()
    tensor([[1, 1, 0],
            [1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)

    Args:
        size: How many keys; the same for all items. `Lengths` has one number for each.
    """

    size: int = static()

    def __init__(self, size: int) -> None:
        self.size = whole("Prefix's size", size)

    def allows(self, pairs: Pairs) -> Allowed:
        return pairs.column_index() < self.size

    def span(self, pairs: Pairs) -> tuple[Count, Count] | None:
        end = torch.tensor([[min(self.size, pairs.keys)]], device=pairs.device)
        return torch.zeros_like(end), end

    def rewire(self, source: Int[Tensor, " column"], keys: int, fresh: bool = True) -> Mask:
        return Rewired(self, source[None, :], keys, fresh)

    def check(self, shape: tuple[int, ...], device: torch.device) -> None:
        """A prefix fits any number of keys."""
