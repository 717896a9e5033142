"""What queries have in sight of a memory: checked once, and remembered for the next step."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from regard.attention.core.numerics import broadcast_batch
from regard.attention.core.tracing import is_concrete
from regard.attention.core.validation import as_queries
from regard.attention.masks import Dense, Mask, PairIndex
from regard.attention.memory import Memory


@dataclass(slots=True)
class ReadPlan:
    """Queries that fit a memory, and which of its keys they may read."""

    pairs: PairIndex
    mask: Mask | None
    shape: tuple[int, ...]
    """`(*batch, query, key)` as people see it: without heads."""

    memory_batch: tuple[int, ...]
    """The memory's batch, heads included."""

    is_vector: bool
    """Was it one vector?"""

    dtype: torch.dtype
    """That of the memory."""

    may_have_empty_rows: bool
    """May there be a query that reads nothing?"""

    cache: dict[Any, Any] = field(default_factory=dict)
    """What kernels found out about reading so."""

    cached_step: Any = None
    """What a read of the same kind starts from, if there was one that may be repeated so."""

    def as_sequence(self, queries: Tensor) -> Tensor:
        """The queries with their axis, in the memory's dtype."""
        queries = queries if queries.dtype == self.dtype else queries.to(self.dtype)
        return queries[None] if self.is_vector else queries


def plan_read(queries: Tensor, memory: Memory, mask: Mask | None, axes: int) -> ReadPlan:
    """What these queries have in sight, with a mask of theirs; raise unless they fit.

    A decoder asks one query at a time, always of the same kind, and the memory remembers what was
    found for it: for so little work, checks take longer than reading.
    """
    if mask is not None or not _is_single_query(queries):
        return _make_plan(queries, memory, mask, axes)
    kind = queries.shape, queries.dtype, queries.layout
    found: ReadPlan | None = memory.plans.get(kind)
    if found is None:
        found = _make_plan(queries, memory, None, axes)
        if found.mask is not None:
            _densify_mask(found)
        memory.plans[kind] = found
    return found


def _is_single_query(queries: Tensor) -> bool:
    if not isinstance(queries, Tensor) or (queries.ndim > 1 and queries.shape[-2] != 1):
        return False
    return is_concrete(queries) and not torch.is_autocast_enabled("cpu")


def _make_plan(queries: Tensor, memory: Memory, mask: Mask | None, axes: int) -> ReadPlan:
    held = memory.batch
    batch = held[: len(held) - axes]
    queries, bare = as_queries(queries, memory.values, batch)
    shape = (*broadcast_batch(queries.shape[:-2], batch), queries.shape[-2], len(memory))
    mask = _one_mask(memory, mask, shape, axes)
    pairs = PairIndex(shape[-2], shape[-1], queries.device)
    return ReadPlan(
        pairs, mask, shape, held, bare, queries.dtype, mask is not None or not shape[-1]
    )


def _one_mask(memory: Memory, mask: Mask | None, shape: tuple[int, ...], axes: int) -> Mask | None:
    """The memory's mask and the read's, checked, as one."""
    own, device = memory.mask, memory.values.device
    if own is not None:
        own.check(shape, device)
    if mask is not None:
        mask.check(shape, device)
        own = mask if own is None else own & mask
    return own.heads(axes) if axes and own is not None else own


def _densify_mask(sight: ReadPlan) -> None:
    """Make a tensor of a mask for one query, and see whether some items are all hidden."""
    assert sight.mask is not None
    allowed = sight.mask.allows(sight.pairs)
    keys = allowed.expand(*allowed.shape[:-1], sight.shape[-1])
    sight.mask, sight.may_have_empty_rows = Dense(keys.contiguous()), bool((~keys.any(-1)).any())
