"""The recipe: score, select, read; as a function and as a module that owns its parameters."""

from typing import Any

import torch
from torch import Tensor, nn

from regard.attention import kernels
from regard.attention.core.autocast import autocast_disabled
from regard.attention.core.axes import Prepared, StepState
from regard.attention.core.errors import DtypeError, ForeignMemoryError, shown
from regard.attention.core.fingerprint import fingerprint, parameter_version
from regard.attention.core.nonfinite import validate_pairs, zero_nonfinite_queries
from regard.attention.core.records import replace
from regard.attention.core.validation import check_bias, check_bias_shape, copy_parameter
from regard.attention.fast_paths import cached_step, plain_dot, remember_step
from regard.attention.kernels import View, dispatch
from regard.attention.kernels.comparison import take
from regard.attention.kernels.request import any_head, restore_nan
from regard.attention.masks import Mask, as_mask
from regard.attention.memory import Memory, build_memory, set_owner
from regard.attention.reading import (
    HeadLayout,
    Part,
    Reading,
    concat_readings,
    make_reading,
    make_request,
    plan_read,
)
from regard.attention.scores import ScaledDot, Score, as_score
from regard.attention.scores.function import Function
from regard.attention.selection import Selection, Softmax, as_selection
from regard.attention.state import START, ReadPlan, State, Stateful, check_state, state_keys

SCORE, SELECT = ScaledDot(), Softmax()
"""The defaults; neither has parameters."""


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
        mask: A mask, or a boolean tensor `(*batch, query, key)`, True = may read.
        bias: Added to the scores: floats `(*batch, query, key)`.
        state: The last reading's, for scores and selections that are stateful.

    An axis of size 1 in the batch, the mask or the bias broadcasts.
    """
    score = SCORE if score is None else score
    select = SELECT if select is None else select
    if mask is None and bias is None and state is None:
        reading = plain_dot(score, select, queries, keys, values)
        if reading is not None:
            return reading
    score, select = as_score(score), as_selection(select)
    mask = None if mask is None else as_mask(mask)
    keys, values, nonfinite = validate_pairs(keys, values, masked=mask is not None)
    many = isinstance(queries, Tensor) and queries.ndim > 1 and queries.shape[-2] > 1
    memory = build_memory(score, keys, values, mask, nonfinite, once=many)
    return read(score, select, queries, memory, state=state, bias=bias)


class Attention(nn.Module):
    """A score and a selection with their parameters.

    Called, it reads as `attend` does; step by step, prepare the memory once and read it often:

        memory = attention.prepare(keys, values, mask)
        reading = attention.read(queries, memory, state=state)

    Args:
        score: How relevant is each key: a score or any callable; `ScaledDot()` unless given.
        select: How much of each is read; `Softmax()` unless given.
    """

    head_shape: tuple[int, ...] = ()  # it has no heads

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
        """Prepare and read at once: see `attend`."""
        return attend(
            queries, keys, values,
            score=self.score, select=self.select, mask=mask, bias=bias, state=state,
        )  # fmt: skip

    def prepare(self, keys: Tensor, values: Tensor, mask: Mask | Tensor | None = None) -> Memory:
        """A memory of these pairs, the keys projected once, with a mask for all reads."""
        mask = as_mask(mask)
        # A read may bring a mask, so non-finite pairs are always zeroed.
        keys, values, nonfinite = validate_pairs(keys, values, masked=True)
        memory = build_memory(self.score, keys, values, mask, nonfinite)
        return set_owner(self, memory, (keys.shape[-1], values.shape[-1]))

    def read(
        self,
        queries: Tensor,
        memory: Memory,
        *,
        state: State | None = None,
        mask: Mask | Tensor | None = None,
        bias: Tensor | None = None,
    ) -> Reading:
        """Read a memory that this attention prepared; a mask here is combined with its own."""
        check_owner(memory, self)
        parts: dict[str, Any] = self._modules  # as attributes they cost a search at each step
        score, select = parts["score"], parts["select"]
        if mask is None and bias is None:
            reading = cached_step(score, select, queries, memory, state)
            if reading is not None:
                return reading
        memory.check()
        mask = None if mask is None else as_mask(mask)
        return read(score, select, queries, memory, state=state, mask=mask, bias=bias)

    def fingerprint(self) -> str:
        """A hash of the score with its parameters, on which prepared keys depend."""
        return fingerprint(self.score)

    def parameter_version(self) -> int:
        """How often the score's parameters were changed in place."""
        return parameter_version(self.score)

    def cache(self, prepared: Prepared) -> Prepared:
        """What kernels cache of prepared keys."""
        return kernels.cache_keys(self.score.compares, prepared)


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
    """The recipe from the queries on: plan, compare, select, sum."""
    plan = plan_read(queries, memory, mask, heads.head_shape if heads else ())
    queries = plan.as_sequence(queries)
    if bias is not None:
        check_bias(bias, queries)
        bias = copy_parameter(
            heads.split_bias(bias, plan.shape) if heads else check_bias_shape(bias, plan.shape)
        )
    head_axes = len(heads.head_shape) if heads else 0
    if plan.may_have_empty_rows:
        queries = zero_nonfinite_queries(
            queries, lambda: any_head(plan.view.visible_counts() > 0, head_axes)
        )
    queries = heads.split_heads(queries) if heads else copy_parameter(queries)
    state = _start_or_check(score, select, memory, plan, state)
    view = plan.view.at_step(state.step) if state.step else plan.view
    reading = _read_rows(score, select, queries, memory, view, bias, state)
    if heads is None:
        if plan.score is None and not state.owners:
            remember_step(score, select, memory, plan, reading.parts[0].request)
    else:
        reading.context, reading.head_axes = heads.merge_heads(reading.context), head_axes
        if plan.may_have_empty_rows:
            # The output projection has a bias: re-zero empty rows.
            empty = ~any_head(view.visible_counts() > 0, head_axes)
            reading.context = reading.context.masked_fill(empty, 0.0)
    for nonfinite in (memory.nonfinite_keys, memory.nonfinite_values):
        reading.context = restore_nan(reading.context, nonfinite, view, head_axes)
    if plan.is_vector:
        reading.context, reading.is_vector = reading.context.squeeze(-2), True
    return reading


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


def _start_or_check(
    score: Score, select: Selection, memory: Memory, plan: ReadPlan, state: State | None
) -> State:
    """The state that was given, checked; without one, the state before the first step."""
    owners = state_keys(score, select)
    shape = (*plan.view.batch, *plan.shape[-2:])
    if state is not None:
        check_state(state, owners, shape, memory.values.device)
        return state

    def start(part: Score | Selection) -> StepState:
        return part.start(memory.prepared, shape) if isinstance(part, Stateful) else {}

    return State(start(score), start(select), owners=owners) if owners else START


def _read_rows(
    score: Score, select: Selection, queries: Tensor, memory: Memory,
    view: View, bias: Tensor | None, state: State,
) -> Reading:  # fmt: skip
    """Read all rows at once, or one after another if one needs what the last one read."""
    rows = queries.shape[-2]
    # A huge key that is hidden would overflow beside the others: each row gets a memory without it.
    hides_huge = memory.huge and view.mask is not None
    if not hides_huge and (rows == 1 or not state.owners):
        return _read_once(score, select, queries, memory, view, bias, state)
    readings = []
    for row in torch.arange(rows, device=queries.device).split(1):
        row_bias, row_view = take(bias, row, rows), view.rows(row)
        allowed = row_view.allowed() if hides_huge else None
        visible = memory if allowed is None else _zero_masked(memory, allowed)
        reading = _read_once(
            score, select, queries[..., row, :], visible, row_view, row_bias, state
        )
        readings.append(reading)
        state = reading.state
    empty = memory.values.new_zeros(*view.batch, 0, memory.values.shape[-1])
    return concat_readings(readings, empty, state)


def _read_once(
    score: Score, select: Selection, queries: Tensor, memory: Memory,
    view: View, bias: Tensor | None, state: State,
) -> Reading:  # fmt: skip
    request = make_request(score, select, queries, memory, view, state, bias)
    request.comparison.check()
    device = memory.values.device.type
    if torch.is_autocast_enabled(device):
        with autocast_disabled(device):
            answer = dispatch(request)
    else:
        answer = dispatch(request)
    reading = make_reading(request, answer, state)
    if state.owners:
        part, after = reading.parts[0], reading.state
        after.score = _advance(score, state.score, part)
        after.selection = _advance(select, state.selection, part)
    return reading


def _advance(owner: Score | Selection, state: StepState, part: Part) -> StepState:
    if isinstance(owner, Stateful):
        return owner.advance(state, part.weights(), part.request)
    return state


def _zero_masked(memory: Memory, allowed: Tensor) -> Memory:
    """The memory as one row of queries may read it: masked keys and values are 0.

    Args:
        memory: Pairs, some of them huge.
        allowed: `(*batch, 1, key)`: which pairs this row may read.
    """
    hidden = ~allowed.mT.expand(*allowed.shape[:-2], len(memory), 1)
    return replace(
        memory,
        prepared={name: each.masked_fill(hidden, 0.0) for name, each in memory.prepared.items()},
        values=memory.values.masked_fill(hidden, 0.0),
        cached={},
    )
