"""The recipe: score, select, read; as a function and as a module that owns its parameters."""

from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from regard.attention import kernels
from regard.attention import memory as memories
from regard.attention.cached_step import cached_step, remember_step
from regard.attention.core.autocast import autocast_disabled
from regard.attention.core.axes import Prepared, StepState
from regard.attention.core.errors import DtypeError, ForeignMemoryError, OptionError, shown
from regard.attention.core.fingerprint import fingerprint, parameter_version
from regard.attention.core.nonfinite import zero_nonfinite_queries
from regard.attention.core.numerics import broadcast_batch
from regard.attention.core.validation import check_bias, check_bias_shape, copy_parameter
from regard.attention.kernels import Request, View, dispatch
from regard.attention.kernels.comparison import take
from regard.attention.kernels.request import over_heads, restore_nan
from regard.attention.masks import Mask, as_mask
from regard.attention.memory import Memory
from regard.attention.plain_dot import plain_dot
from regard.attention.read_plan import plan_read
from regard.attention.reading import Part, Reading, make_part
from regard.attention.scores import ScaledDot, Score, as_score
from regard.attention.scores.function import Function
from regard.attention.selection import Selection, Softmax
from regard.attention.state import State, Stateful, check_state, state_keys

SCORE, SELECT = ScaledDot(), Softmax()
"""What serves where nothing else is given; neither has anything that could change."""


def attend(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    *,
    score: Score | Function | None = None,
    select: Selection | None = None,
    mask: Mask | Tensor | None = None,
    bias: Tensor | None = None,
    state: State | None = None,
) -> Reading:
    """Read the values whose keys are relevant to the queries.

    >>> from regard import scores
    >>> stations = torch.tensor([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])
    >>> temperatures = torch.tensor([[20.0], [14.0], [8.0]])
    >>> here = torch.tensor([0.3, 0.0])
    >>> attend(here, stations, temperatures, score=scores.InverseDistance()).context
    tensor([19.2170])

    Args:
        queries: `(*batch, query, query_size)`, or a bare vector, answered with a bare vector.
        keys: `(*batch, key, key_size)`.
        values: `(*batch, key, value_size)`.
        score: How relevant is each key; `scores.ScaledDot()` unless given.
        select: How much of each is read; `selection.Softmax()` unless given.
        mask: Who may read whom: a mask, or a boolean tensor `(*batch, query, key)`, True = may.
        bias: Added to the scores: floats `(*batch, query, key)`.
        state: What the last reading handed on, for mechanisms that look back.

    An axis of size 1 in the batch, the mask or the bias serves all.
    """
    score = SCORE if score is None else score
    select = SELECT if select is None else select
    if mask is None and bias is None and state is None:
        found = plain_dot(score, select, queries, keys, values)
        if found is not None:
            return found
    score, select = as_score(score), as_selection(select)
    mask = None if mask is None else as_mask(mask)
    keys, values, guard = memories.validate_pairs(keys, values, guarded=mask is not None)
    many = isinstance(queries, Tensor) and queries.ndim > 1 and queries.shape[-2] > 1
    memory = memories.build(score, keys, values, mask, guard, once=many)
    return read(score, select, queries, memory, state=state, bias=bias)


class Attention(nn.Module):
    """A score and a selection with their parameters.

    Called whole it reads as `attend` does; step by step, prepare the memory once and read it often:

        memory = attention.prepare(keys, values, mask)
        reading = attention.read(queries, memory, state=state)

    Args:
        score: How relevant is each key: a score or any callable; `ScaledDot()` unless given.
        select: How much of each is read; `Softmax()` unless given.
    """

    axes = 0  # of heads

    def __init__(
        self, score: Score | Function | None = None, select: Selection | None = None
    ) -> None:
        super().__init__()
        self.score = ScaledDot() if score is None else as_score(score)
        self.select = Softmax() if select is None else as_selection(select)

    def forward(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        *,
        mask: Mask | Tensor | None = None,
        bias: Tensor | None = None,
        state: State | None = None,
    ) -> Reading:
        """Read the whole at once: see `attend`."""
        return attend(
            queries, keys, values,
            score=self.score, select=self.select, mask=mask, bias=bias, state=state,
        )  # fmt: skip

    def prepare(self, keys: Tensor, values: Tensor, mask: Mask | Tensor | None = None) -> Memory:
        """A memory of these pairs, the keys projected once; the mask hides some for good."""
        mask = as_mask(mask)
        # A mask may still come with the read, so what is not finite is always set aside.
        keys, values, guard = memories.validate_pairs(keys, values, guarded=True)
        memory = memories.build(self.score, keys, values, mask, guard)
        return memories.set_owner(self, memory, (keys.shape[-1], values.shape[-1]))

    def read(
        self,
        queries: Tensor,
        memory: Memory,
        *,
        state: State | None = None,
        mask: Mask | Tensor | None = None,
        bias: Tensor | None = None,
    ) -> Reading:
        """Read a memory that this attention prepared; a mask here hides more than its own."""
        check_owner(memory, self)
        parts: dict[str, Any] = self._modules  # by name, torch looks there last, and at each step
        score, select = parts["score"], parts["select"]
        if mask is None and bias is None:
            found = cached_step(score, select, queries, memory, state)
            if found is not None:
                return found
        memory.check()
        mask = None if mask is None else as_mask(mask)
        return read(score, select, queries, memory, state=state, mask=mask, bias=bias)

    def fingerprint(self) -> str:
        """A hash of the score with its parameters, on which prepared keys depend."""
        return fingerprint(self.score)

    def parameter_version(self) -> int:
        """How often the score's parameters have been changed in place."""
        return parameter_version(self.score)

    def cache(self, prepared: Prepared) -> Prepared:
        """What kernels cache of prepared keys."""
        return kernels.cache_keys(self.score.compares, prepared)


@runtime_checkable
class HeadLayout(Protocol):
    """How queries are spread over heads, and what they read is brought together again."""

    axes: int
    """How many axes of heads there are before `(query, size)`."""

    def split_heads(self, queries: Tensor) -> Tensor:
        """`(*batch, query, size)` to `(*batch, *heads, query, size)`."""

    def merge_heads(self, context: Tensor) -> Tensor:
        """`(*batch, *heads, query, size)` to `(*batch, query, size)`."""

    def split_bias(self, bias: Tensor, shape: tuple[int, ...]) -> Tensor:
        """A bias for `shape` `(*batch, query, key)`, one for all heads or one for each."""


def read(
    score: Score,
    select: Selection,
    queries: Tensor,
    memory: Memory,
    *,
    state: State | None = None,
    mask: Mask | None = None,
    bias: Tensor | None = None,
    heads: HeadLayout | None = None,
) -> Reading:
    """The recipe from the queries on: check, guard, compare, select, answer."""
    axes = 0 if heads is None else heads.axes
    seen = plan_read(queries, memory, mask, axes)
    queries = seen.as_sequence(queries)
    if bias is not None:
        check_bias(bias, queries)
        shape = seen.shape
        bias = copy_parameter(
            heads.split_bias(bias, shape) if heads else check_bias_shape(bias, shape)
        )
    if seen.may_have_empty_rows:
        view = View(seen.pairs, seen.mask)
        queries = zero_nonfinite_queries(
            queries, lambda: over_heads(view.visible_counts() > 0, axes)
        )
    asking = heads.split_heads(queries) if heads else copy_parameter(queries)
    batch = broadcast_batch(asking.shape[:-2], seen.memory_batch) if heads else seen.shape[:-2]
    of = state_keys(score, select)
    if state is None:
        state = (
            _initial_state(score, select, memory, (*batch, *seen.shape[-2:]))
            if of
            else State({}, {})
        )
    else:
        check_state(state, of, (*batch, *seen.shape[-2:]), queries.device)
    view = View(seen.pairs, seen.mask, batch, state.step)
    view.cache = seen.cache
    context, parts, state = _read_rows(score, select, asking, memory, view, bias, state)
    if not of and seen.cached_step is None and heads is None:
        remember_step(score, select, memory, seen, parts[0].request)
    context = heads.merge_heads(context) if heads else context
    if heads and seen.may_have_empty_rows:
        # What brings heads together may add a constant; who reads nothing still reads nothing.
        context = context.masked_fill(~over_heads(view.visible_counts() > 0, axes), 0.0)
    if memory.nonfinite_keys is not None or memory.nonfinite_values is not None:
        for faulty in (memory.nonfinite_keys, memory.nonfinite_values):
            context = restore_nan(context, faulty, view, axes)
    return Reading(
        context.squeeze(-2) if seen.is_vector else context, parts, state, seen.is_vector, axes
    )


def check_owner(memory: Memory, owner: object) -> None:
    """Raise unless the memory was prepared by this very attention."""
    if not isinstance(memory, Memory):
        raise DtypeError(
            f"{shown(memory)} is not a memory. Prepare one, memory = attention.prepare(keys, "
            "values), and read it: attention.read(queries, memory)."
        )
    if memory.owner is not owner:
        raise ForeignMemoryError(
            "this memory was prepared by another attention, whose parameters are in its keys. "
            "Read it with the one that prepared it, or prepare the keys again with this one."
        )


def as_selection(select: Selection) -> Selection:
    """Raise unless it is a selection."""
    if isinstance(select, Selection):
        return select
    raise OptionError(
        f"{shown(select)} is not a selection. Pass an object of regard.selection, such as "
        "selection.Softmax() or selection.Sparsemax()."
    )


def _initial_state(
    score: Score, select: Selection, memory: Memory, shape: tuple[int, ...]
) -> State:
    def trace(part: Score | Selection) -> StepState:
        return part.start(memory.prepared, shape) if isinstance(part, Stateful) else {}

    return State(trace(score), trace(select), owners=state_keys(score, select))


def _read_rows(
    score: Score, select: Selection, queries: Tensor, memory: Memory,
    view: View, bias: Tensor | None, state: State,
) -> tuple[Tensor, list[Part], State]:  # fmt: skip
    """Ask for all queries at once, or one after another if one needs what the last one read."""
    rows = queries.shape[-2]
    # What is huge and hidden would overflow beside what is not: each row gets a memory without it.
    apart = memory.huge and view.mask is not None
    if not apart and (rows == 1 or not state.owners):
        context, part, state = _read_once(score, select, queries, memory, view, bias, state)
        return context, [part], state
    contexts, parts = [memory.values.new_zeros(*view.batch, 0, memory.values.shape[-1])], []
    for row in torch.arange(rows, device=queries.device).split(1):
        own_bias, own_view = take(bias, row, rows), view.rows(row)
        allowed = own_view.allowed() if apart else None
        own = memory if allowed is None else memories.without_hidden(memory, allowed)
        context, part, state = _read_once(
            score, select, queries[..., row, :], own, own_view, own_bias, state
        )
        contexts.append(context)
        parts.append(part)
    return torch.cat(contexts, -2), parts, state


def _read_once(
    score: Score, select: Selection, queries: Tensor, memory: Memory,
    view: View, bias: Tensor | None, state: State,
) -> tuple[Tensor, Part, State]:  # fmt: skip
    comparison = score.compare(queries, memory.prepared, state.score)
    comparison.check()
    comparison = comparison if bias is None else comparison.biased(bias)
    rule = select.bind(queries, view, state.selection)
    values = memory.values
    request = Request(comparison, rule, values, view, memory.cached, memory.nonfinite_keys)
    if torch.is_autocast_enabled(values.device.type):
        with autocast_disabled(values.device.type):
            context, weights = dispatch(request)
    else:
        context, weights = dispatch(request)
    if weights is not None and memory.nonfinite_keys is not None:
        weights = request.restore_nan(weights)
    part = make_part(request, weights)
    step = state.step + queries.shape[-2]
    if not state.owners:
        return context, part, State(state.score, state.selection, step)
    traces = _advance(score, state.score, part), _advance(select, state.selection, part)
    return context, part, State(traces[0], traces[1], step, state.owners)


def _advance(maker: Score | Selection, trace: StepState, part: Part) -> StepState:
    if isinstance(maker, Stateful):
        return maker.advance(trace, part.weights(), part.request)
    return trace
