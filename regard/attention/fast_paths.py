"""Short ways for short reads, whose checks would take longer than the read itself.

`cached_step` is the next step of a decoder: what the last read of this memory checked is in its
plan. `plain_dot` is softmax over dot products of plain tensors with nothing masked. Both return
None wherever something else is to be asked, and the usual way, which knows all errors, goes on.
"""

from typing import Any

import torch
from torch import Tensor

from regard.attention import scores
from regard.attention.core.tracing import in_functorch
from regard.attention.kernels import (
    DotComparison,
    Request,
    SingleQuery,
    SoftmaxRule,
    View,
    dispatch,
    dot_softmax,
    is_overridden,
)
from regard.attention.masks import PairIndex
from regard.attention.memory import Memory
from regard.attention.reading import Reading, make_reading, make_request
from regard.attention.selection import Selection, Softmax
from regard.attention.state import START, ReadPlan, State

SINGLE_QUERY = SingleQuery()

DOT_SCORES = frozenset(
    {scores.Dot, scores.ScaledDot, scores.Bilinear, scores.Cosine, scores.Location}
)
"""The scores that are dot products; a subclass of somebody's own may be anything."""


def cached_step(
    score: scores.Score, select: Selection, queries: Tensor, memory: Memory, state: State | None
) -> Reading | None:
    """Read as the last read of the same shape did; None unless that was a step of one query."""
    if torch.is_grad_enabled() or torch.compiler.is_compiling() or type(queries) is not Tensor:
        return None
    plan = memory.plans.get((queries.shape, queries.dtype, queries.layout))
    if plan is None or plan.score is not score or plan.select is not select:
        return None
    if not queries.is_cpu or in_functorch() or torch.is_autocast_enabled("cpu") or is_overridden():
        return None
    view = plan.view
    if state is None:
        state = START
    elif type(state) is not State or state.owners:
        return None
    else:
        view = view.at_step(state.step)
    request = make_request(score, select, queries, memory, view, state)
    if not SINGLE_QUERY.repeats(request):
        return None
    return make_reading(request, SINGLE_QUERY(request), state)


def remember_step(
    score: scores.Score, select: Selection, memory: Memory, plan: ReadPlan, request: Request
) -> None:
    """Let `cached_step` repeat this read, if it was a step of one query and all is finite."""
    finite = memory.nonfinite_keys is None and memory.nonfinite_values is None
    # Binding another rule may draw from a generator, which must not be done twice for one read.
    single = plan.view.cache.packed is not None and type(request.rule) is SoftmaxRule
    if single and finite and not plan.is_vector and not plan.may_have_empty_rows:
        plan.score, plan.select = score, select


def plain_dot(
    score: Any, select: object, queries: Tensor, keys: Tensor, values: Tensor
) -> Reading | None:
    """Read without a mask, a bias or a state; None unless it is plain softmax(q kᵀ) v."""
    if type(select) is not Softmax or select.dropout or type(score) not in DOT_SCORES:
        return None
    if not (_is_plain(queries) and _is_plain(keys) and _is_plain(values)) or in_functorch():
        return None
    if torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu"):
        return None
    query_shape, key_shape, value_shape = queries.shape, keys.shape, values.shape
    batch = query_shape[:-2]
    if len(batch) not in (1, 2) or batch != key_shape[:-2] or key_shape[:-1] != value_shape[:-1]:
        return None
    if 0 in query_shape or 0 in key_shape or 0 in value_shape:
        return None
    view = View(PairIndex(query_shape[-2], key_shape[-2], queries.device), None, batch)
    memory = Memory(score.prepare(keys), values, None, {}, None, None)
    request = make_request(score, select, queries, memory, view, START)
    answer = _dot_softmax(request, batch.numel(), select.temperature) or dispatch(request)
    return make_reading(request, answer, START)


def _dot_softmax(request: Request, items: int, temperature: float) -> tuple[Tensor, None] | None:
    """The answer of the C kernel, where it is the fastest."""
    dot, values = request.comparison, request.values
    assert isinstance(dot, DotComparison)
    if (
        dot.factor is not None
        or is_overridden()
        or not dot_softmax.is_faster(dot.keys, values, items, learns=request.wants_gradient)
    ):
        return None
    return dot_softmax.read(dot.queries, dot.keys, values, None, dot.scale / temperature), None


def _is_plain(tensor: Tensor) -> bool:
    return (
        type(tensor) is Tensor
        and tensor.dtype == torch.float32
        and tensor.is_cpu
        and tensor.layout == torch.strided
        and not tensor.is_nested
    )
