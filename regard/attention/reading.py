"""A read from its plan to its reading: the context at once, the weights when they are asked for.

    plan_read       queries × memory × mask → `ReadPlan`     what fits and what is visible, checked
    make_request    score, selection → `Request`             plain data, which a kernel answers
    make_reading    context → `Reading`                      with what the weights come from

Requests and readings are made here and nowhere else.
"""

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention import kernels
from regard.attention.core.autocast import autocast_disabled
from regard.attention.core.errors import ChangedInputError
from regard.attention.core.numerics import broadcast_batch
from regard.attention.core.records import cache_field, deep_tensors, record, static, version
from regard.attention.core.tracing import in_functorch, is_concrete
from regard.attention.core.validation import as_index, as_queries
from regard.attention.kernels import Request, View
from regard.attention.masks import Dense, Mask, PairIndex
from regard.attention.memory import Memory
from regard.attention.scores import Score
from regard.attention.selection import Selection
from regard.attention.state import ReadPlan, State


@record
class Part:
    """One request that was answered, with its weights if they are cached."""

    request: Request
    cached_weights: Float[Tensor, "*batch query key"] | None = None
    version: int = cache_field(default=-1)
    """The versions of the tensors that weights depend on, summed; −1 if they are not watched."""

    def weights(self) -> Float[Tensor, "*batch query key"]:
        """The weights, in float32 at least; computed again unless they are cached."""
        if self.cached_weights is not None:
            return self.cached_weights
        self.check_unchanged()
        with autocast_disabled(self.request.values.device.type):
            weights = kernels.weights(self.request)
        # Weights computed without a gradient must not serve someone who wants one.
        if torch.is_grad_enabled() or not self.request.comparison.requires_grad:
            self.cached_weights = weights
        return weights

    def check_unchanged(self) -> None:
        """Raise if an input of this read was changed in place since."""
        if self.version >= 0 and self.version != _version(self.request):
            raise ChangedInputError(
                "the queries, the keys, the bias or the mask of this reading were changed in place "
                "after it, so the weights that it used cannot be computed any more. Ask for "
                "reading.weights before the change, or read a copy: queries.clone()."
            )


@record
class Reading:
    """What was read: `context`, and on demand `weights`, `rows(…)`, `log_probs`, `entropy`.

    The weights are what the reading really used: the same mask, the same parameters (though an
    optimiser has moved on since), the same draw; before dropout. Queries, keys, bias or mask that
    were changed in place since are an error. `context, weights = reading`
    unpacks it. `state` goes into the next step's `read`.
    """

    context: Float[Tensor, "..."]
    parts: list[Part]
    state: State
    is_vector: bool = static(default=False)
    head_axes: int = static(default=0)

    @property
    def weights(self) -> Float[Tensor, "..."]:
        """`(*batch, query, key)`, with heads `(*batch, heads, query, key)`."""
        return self._to_public(_concat([part.weights() for part in self.parts], -2))

    def rows(self, index: int | slice | Sequence[int] | Tensor) -> Float[Tensor, "..."]:
        """The weights of chosen queries only, at the cost of these alone."""
        total = sum(part.request.shape[-2] for part in self.parts)
        rows = _row_index(index, total, self.context.device)
        if len(self.parts) == 1 and self.parts[0].cached_weights is None:
            self.parts[0].check_unchanged()
            with autocast_disabled(self.context.device.type):
                weights = kernels.weights(self.parts[0].request.rows(rows))
        else:
            weights = _concat([part.weights() for part in self.parts], -2)[..., rows, :]
        return self._to_public(weights)

    @property
    def log_probs(self) -> Float[Tensor, "..."]:
        """`(*batch, query)`: under `Hard`, log-probability of the key drawn; 0 for all others."""
        self._check_unchanged()
        with autocast_disabled(self.context.device.type):
            log_probs = _concat([part.request.log_probs() for part in self.parts], -1)
        return self._to_public(log_probs[..., None]).squeeze(-1)

    @property
    def entropy(self) -> Float[Tensor, "..."]:
        """`(*batch, query)`: entropy, in nats, of what `Hard` draws from; 0 for all others."""
        self._check_unchanged()
        with autocast_disabled(self.context.device.type):
            entropy = _concat([part.request.entropy() for part in self.parts], -1)
        return self._to_public(entropy[..., None]).squeeze(-1)

    def __iter__(self) -> Iterator[Tensor]:
        yield self.context
        yield self.weights

    def _check_unchanged(self) -> None:
        for part in self.parts:
            part.check_unchanged()

    def _to_public(self, weights: Tensor) -> Tensor:
        """In the context's dtype, with one axis of heads, without the query axis of a vector."""
        weights = weights.flatten(-4, -3) if self.head_axes == 2 else weights
        weights = weights.squeeze(-2) if self.is_vector else weights
        return weights.to(self.context.dtype)


@runtime_checkable
class HeadLayout(Protocol):
    """How queries are split into heads, and their contexts merged again."""

    head_shape: tuple[int, ...]
    """The axes of heads before `(query, size)`."""

    def split_heads(self, queries: Tensor) -> Tensor:
        """`(*batch, query, size)` to `(*batch, *heads, query, size)`."""

    def merge_heads(self, context: Tensor) -> Tensor:
        """`(*batch, *heads, query, size)` to `(*batch, query, size)`."""

    def split_bias(self, bias: Tensor, shape: tuple[int, ...]) -> Tensor:
        """A bias for `shape` `(*batch, query, key)`, one for all heads or one for each."""


def plan_read(
    queries: Tensor, memory: Memory, mask: Mask | None, head_shape: tuple[int, ...]
) -> ReadPlan:
    """How these queries read this memory, under a mask of their own; raise unless they fit.

    A decoder reads one query at a time, always of the same shape: for so little work the checks
    would take longer than the read, so the memory caches their plan.
    """
    if mask is not None or not _is_single_query(queries):
        return _make_plan(queries, memory, mask, head_shape)
    key = queries.shape, queries.dtype, queries.layout
    plan = memory.plans.get(key)
    if plan is None:
        plan = memory.plans[key] = _make_plan(queries, memory, None, head_shape)
        if plan.view.mask is not None:
            _densify_mask(plan)
    return plan


def make_request(
    score: Score, select: Selection, queries: Tensor, memory: Memory,
    view: View, state: State, bias: Tensor | None = None,
) -> Request:  # fmt: skip
    """One read as plain data: the score's comparison and the selection's rule, both fixed now."""
    comparison = score.compare(queries, memory.prepared, state.score)
    comparison = comparison if bias is None else comparison.biased(bias)
    rule = select.bind(queries, view, state.selection)
    return Request(comparison, rule, memory.values, view, memory.cached, memory.nonfinite_keys)


def make_reading(request: Request, answer: tuple[Tensor, Tensor | None], state: State) -> Reading:
    """The reading of a request, from a kernel's context and its weights, if they came with it."""
    context, weights = answer
    if weights is None:
        part = Part(request)
        if not (torch.compiler.is_compiling() or in_functorch()):
            part.version = _version(request)
    elif request.nonfinite_keys is None:
        part = Part(request, weights)
    else:
        part = Part(request, request.restore_nan(weights))
    step = state.step + request.view.pairs.height
    return Reading(context, [part], State(state.score, state.selection, step, state.owners))


def concat_readings(readings: list[Reading], empty: Tensor, state: State) -> Reading:
    """The readings of rows that were read one after another; of no rows, an empty context."""
    contexts = torch.cat([empty, *[reading.context for reading in readings]], -2)
    return Reading(contexts, [part for reading in readings for part in reading.parts], state)


def _version(request: Request) -> int:
    """The versions of all tensors that the weights depend on, summed."""
    found, mask = request.comparison.version, request.view.mask
    return found if mask is None else found + sum(map(version, deep_tensors(mask)))


def _concat(parts: list[Tensor], axis: int) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, axis)


def _row_index(
    index: int | slice | Sequence[int] | Tensor, total: int, device: torch.device
) -> Tensor:
    if isinstance(index, slice):
        return torch.arange(total, device=device)[index]
    return as_index("rows", [index] if isinstance(index, int) else index, total, device)


def _is_single_query(queries: Tensor) -> bool:
    if not isinstance(queries, Tensor) or (queries.ndim > 1 and queries.shape[-2] != 1):
        return False
    return is_concrete(queries) and not torch.is_autocast_enabled("cpu")


def _make_plan(
    queries: Tensor, memory: Memory, mask: Mask | None, head_shape: tuple[int, ...]
) -> ReadPlan:
    memory_batch = memory.batch
    batch = memory_batch[: len(memory_batch) - len(head_shape)]
    queries, is_vector = as_queries(queries, memory.values, batch)
    query_batch, rows, keys = queries.shape[:-2], queries.shape[-2], len(memory)
    shape = (*broadcast_batch(query_batch, batch), rows, keys)
    mask = _combine_masks(memory, mask, shape, len(head_shape))
    heads = broadcast_batch((*query_batch, *head_shape), memory_batch) if head_shape else shape[:-2]
    view = View(PairIndex(rows, keys, queries.device), mask, heads)
    return ReadPlan(view, shape, queries.dtype, is_vector, mask is not None or not keys)


def _combine_masks(
    memory: Memory, mask: Mask | None, shape: tuple[int, ...], head_axes: int
) -> Mask | None:
    """The memory's mask and the read's, checked, as one."""
    own, device = memory.mask, memory.values.device
    if own is not None:
        own.check(shape, device)
    if mask is not None:
        mask.check(shape, device)
        own = mask if own is None else own & mask
    return own.heads(head_axes) if head_axes and own is not None else own


def _densify_mask(plan: ReadPlan) -> None:
    """Replace the mask of a single query by its tensor, and see whether some rows are empty."""
    assert plan.view.mask is not None
    allowed = plan.view.mask.allows(plan.view.pairs)
    keys = allowed.expand(*allowed.shape[:-1], plan.shape[-1])
    plan.view.mask = Dense(keys.contiguous())
    plan.may_have_empty_rows = bool((~keys.any(-1)).any())
