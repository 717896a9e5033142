"""What queries have in sight of a memory: checked once, and remembered for the next step."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from regard.attention.inputs import as_queries
from regard.attention.kernels.numbers import common
from regard.attention.looking import may_look
from regard.attention.masks import Dense, Mask, Pairs
from regard.attention.memory import Memory


@dataclass(slots=True)
class Sight:
    """Queries that fit a memory, and which of its keys they may read."""

    pairs: Pairs
    mask: Mask | None
    shape: tuple[int, ...]
    """`(*batch, query, key)` as people see it: without heads."""

    held: tuple[int, ...]
    """The memory's batch, heads included."""

    bare: bool
    """Was it one vector?"""

    dtype: torch.dtype
    """That of the memory."""

    some_blind: bool
    """May there be a query that reads nothing?"""

    known: dict[Any, Any] = field(default_factory=dict)
    """What kernels found out about reading so."""

    again: Any = None
    """What a read of the same kind starts from, if there was one that may be repeated so."""

    def as_sequence(self, queries: Tensor) -> Tensor:
        """The queries with their axis, in the memory's dtype."""
        queries = queries if queries.dtype == self.dtype else queries.to(self.dtype)
        return queries[None] if self.bare else queries


def in_sight(queries: Tensor, memory: Memory, mask: Mask | None, axes: int) -> Sight:
    """What these queries have in sight, with a mask of theirs; raise unless they fit.

    A decoder asks one query at a time, always of the same kind, and the memory remembers what was
    found for it: for so little work, checks take longer than reading.
    """
    if mask is not None or not _one_at_a_time(queries):
        return _look(queries, memory, mask, axes)
    kind = queries.shape, queries.dtype, queries.layout
    found: Sight | None = memory.sights.get(kind)
    if found is None:
        found = _look(queries, memory, None, axes)
        if found.mask is not None:
            _settle(found)
        memory.sights[kind] = found
    return found


def _one_at_a_time(queries: Tensor) -> bool:
    if not isinstance(queries, Tensor) or (queries.ndim > 1 and queries.shape[-2] != 1):
        return False
    return may_look(queries) and not torch.is_autocast_enabled("cpu")


def _look(queries: Tensor, memory: Memory, mask: Mask | None, axes: int) -> Sight:
    held = memory.batch
    batch = held[: len(held) - axes]
    queries, bare = as_queries(queries, memory.values, batch)
    shape = (*common(queries.shape[:-2], batch), queries.shape[-2], len(memory))
    mask = _one_mask(memory, mask, shape, axes)
    pairs = Pairs(shape[-2], shape[-1], queries.device)
    return Sight(pairs, mask, shape, held, bare, queries.dtype, mask is not None)


def _one_mask(memory: Memory, mask: Mask | None, shape: tuple[int, ...], axes: int) -> Mask | None:
    """The memory's mask and the read's, checked, as one."""
    own, device = memory.mask, memory.values.device
    if own is not None:
        own.check(shape, device)
    if mask is not None:
        mask.check(shape, device)
        own = mask if own is None else own & mask
    return own.heads(axes) if axes and own is not None else own


def _settle(sight: Sight) -> None:
    """Make a tensor of a mask for one query, and see whether some items are all hidden."""
    assert sight.mask is not None
    allowed = sight.mask.allows(sight.pairs)
    keys = allowed.expand(*allowed.shape[:-1], sight.shape[-1])
    sight.mask, sight.some_blind = Dense(keys.contiguous()), bool((~keys.any(-1)).any())
