"""The recipe: score, select, read; as a function and as a module that owns its parameters."""

from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from regard.attention import memory as memories
from regard.attention.again import again, note
from regard.attention.axes import Trace
from regard.attention.errors import DtypeError, ForeignMemoryError, OptionError, shown
from regard.attention.fingerprint import fingerprint, moves
from regard.attention.guard import clean_queries
from regard.attention.inputs import as_mask, check_bias, fitting_bias, settled
from regard.attention.kernels import Request, View, answer
from regard.attention.kernels.autocast import off
from regard.attention.kernels.comparison import take
from regard.attention.kernels.numbers import common
from regard.attention.kernels.request import over_heads, poisoned
from regard.attention.masks import Mask
from regard.attention.memory import Memory
from regard.attention.reading import Part, Reading
from regard.attention.scores import ScaledDot, Score, as_score
from regard.attention.scores.function import Function
from regard.attention.selection import Selection, Softmax
from regard.attention.sight import in_sight
from regard.attention.state import LooksBack, State, check_state, remembering
from regard.attention.straight import straight

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
        found = straight(score, select, queries, keys, values)
        if found is not None:
            return found
    score, select = as_score(score), as_selection(select)
    mask = None if mask is None else as_mask(mask)
    keys, values, faulty = memories.admit(keys, values, guarded=mask is not None)
    many = isinstance(queries, Tensor) and queries.ndim > 1 and queries.shape[-2] > 1
    memory = memories.build(score, keys, values, mask, faulty, once=many)
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
        keys, values, faulty = memories.admit(keys, values, guarded=True)
        memory = memories.build(self.score, keys, values, mask, faulty)
        return memories.owned_by(self, memory)

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
        owned(memory, self)
        parts: dict[str, Any] = self._modules  # by name, torch looks there last, and at each step
        score, select = parts["score"], parts["select"]
        if mask is None and bias is None:
            found = again(score, select, queries, memory, state)
            if found is not None:
                return found
        mask = None if mask is None else as_mask(mask)
        return read(score, select, queries, memory, state=state, mask=mask, bias=bias)

    def fingerprint(self) -> str:
        """A hash of the score with its parameters, on which prepared keys depend."""
        return fingerprint(self.score)

    def moves(self) -> int:
        """How often the score's parameters have been changed in place."""
        return moves(self.score)


@runtime_checkable
class Heads(Protocol):
    """How queries are spread over heads, and what they read is brought together again."""

    axes: int
    """How many axes of heads there are before `(query, size)`."""

    def spread(self, queries: Tensor) -> Tensor:
        """`(*batch, query, size)` to `(*batch, *heads, query, size)`."""

    def gather(self, context: Tensor) -> Tensor:
        """`(*batch, *heads, query, size)` to `(*batch, query, size)`."""

    def spread_bias(self, bias: Tensor, shape: tuple[int, ...]) -> Tensor:
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
    heads: Heads | None = None,
) -> Reading:
    """The recipe from the queries on: check, guard, compare, select, answer."""
    axes = 0 if heads is None else heads.axes
    seen = in_sight(queries, memory, mask, axes)
    queries = seen.as_sequence(queries)
    if bias is not None:
        check_bias(bias, queries)
        shape = seen.shape
        bias = settled(heads.spread_bias(bias, shape) if heads else fitting_bias(bias, shape))
    if seen.some_blind:
        view = View(seen.pairs, seen.mask)
        queries = clean_queries(queries, lambda: over_heads(view.visible() > 0, axes))
    asking = heads.spread(queries) if heads else settled(queries)
    batch = common(asking.shape[:-2], seen.held) if heads else seen.shape[:-2]
    of = remembering(score, select)
    if state is None:
        state = _started(score, select, memory, (*batch, *seen.shape[-2:])) if of else State({}, {})
    else:
        check_state(state, of, (*batch, *seen.shape[-2:]), queries.device)
    view = View(seen.pairs, seen.mask, batch, state.step)
    view.known = seen.known
    context, parts, state = _ask(score, select, asking, memory, view, bias, state)
    if not of and seen.again is None and heads is None:
        note(score, select, memory, seen, parts[0].request)
    context = heads.gather(context) if heads else context
    if heads and seen.some_blind:
        # What brings heads together may add a constant; who reads nothing still reads nothing.
        context = context.masked_fill(~over_heads(view.visible() > 0, axes), 0.0)
    if memory.faulty_keys is not None or memory.faulty_values is not None:
        for faulty in (memory.faulty_keys, memory.faulty_values):
            context = poisoned(context, faulty, view, axes)
    return Reading(context.squeeze(-2) if seen.bare else context, parts, state, seen.bare, axes)


def owned(memory: Memory, owner: object) -> None:
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


def _started(score: Score, select: Selection, memory: Memory, shape: tuple[int, ...]) -> State:
    def trace(part: Score | Selection) -> Trace:
        return part.start(memory.prepared, shape) if isinstance(part, LooksBack) else {}

    return State(trace(score), trace(select), of=remembering(score, select))


def _ask(
    score: Score, select: Selection, queries: Tensor, memory: Memory,
    view: View, bias: Tensor | None, state: State,
) -> tuple[Tensor, list[Part], State]:  # fmt: skip
    """Ask for all queries at once, or one after another if one needs what the last one read."""
    rows = queries.shape[-2]
    if rows == 1 or not state.of:
        context, part, state = _step(score, select, queries, memory, view, bias, state)
        return context, [part], state
    contexts, parts = [memory.values.new_zeros(*view.batch, 0, memory.values.shape[-1])], []
    for row in torch.arange(rows, device=queries.device).split(1):
        own_bias = take(bias, row, rows)
        context, part, state = _step(
            score, select, queries[..., row, :], memory, view.rows(row), own_bias, state
        )
        contexts.append(context)
        parts.append(part)
    return torch.cat(contexts, -2), parts, state


def _step(
    score: Score, select: Selection, queries: Tensor, memory: Memory,
    view: View, bias: Tensor | None, state: State,
) -> tuple[Tensor, Part, State]:  # fmt: skip
    comparison = score.compare(queries, memory.prepared, state.score)
    comparison = comparison if bias is None else comparison.biased(bias)
    rule = select.bind(queries, view, state.selection)
    values = memory.values
    request = Request(comparison, rule, values, view, memory.kept, memory.faulty_keys)
    if torch.is_autocast_enabled(values.device.type):
        with off(values.device.type):
            context, weights = answer(request)
    else:
        context, weights = answer(request)
    if weights is not None and memory.faulty_keys is not None:
        weights = request.poisoned(weights)
    part = Part(request, weights)
    step = state.step + queries.shape[-2]
    if not state.of:
        return context, part, State(state.score, state.selection, step)
    traces = _advanced(score, state.score, part), _advanced(select, state.selection, part)
    return context, part, State(traces[0], traces[1], step, state.of)


def _advanced(maker: Score | Selection, trace: Trace, part: Part) -> Trace:
    if isinstance(maker, LooksBack):
        return maker.advance(trace, part.weights(), part.request)
    return trace
