"""The next step of a decoder: a read like the last one of this memory, by the shortest way.

For so little work every check takes longer than the reading. What the last read found out is kept
in what it had in sight; here a read of the same kind goes from there straight to the kernel.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.attention.core.tracing import in_functorch
from regard.attention.kernels import Request, SingleQuery, SoftmaxRule, View, is_overridden
from regard.attention.memory import Memory
from regard.attention.read_plan import ReadPlan
from regard.attention.reading import Part, Reading
from regard.attention.scores import Score
from regard.attention.selection import Selection
from regard.attention.state import State

STEP = SingleQuery()


@dataclass(slots=True)
class CachedStep:
    """Who read, neither of whom looks back, and with which view."""

    score: Score
    select: Selection
    view: View


def cached_step(
    score: Score, select: Selection, queries: Tensor, memory: Memory, state: State | None
) -> Reading | None:
    """What these queries read, if the last such read was a step; None if all is to be checked."""
    if torch.is_grad_enabled() or torch.compiler.is_compiling() or type(queries) is not Tensor:
        return None
    seen: ReadPlan | None = memory.plans.get((queries.shape, queries.dtype, queries.layout))
    like: CachedStep | None = None if seen is None else seen.cached_step
    if like is None or like.score is not score or like.select is not select:
        return None
    if not queries.is_cpu or in_functorch() or torch.is_autocast_enabled("cpu") or is_overridden():
        return None
    view, step = like.view, 0
    if state is not None:
        if type(state) is not State or state.owners:
            return None
        view, step = view.at_step(state.step), state.step
    comparison = score.compare(queries, memory.prepared, {})
    request = Request(
        comparison, select.bind(queries, view, {}), memory.values, view, memory.cached
    )
    if not STEP.repeats(request):
        return None
    context, weights = STEP(request)
    return Reading(context, [Part(request, weights)], State({}, {}, step + 1))


def remember_step(
    score: Score, select: Selection, memory: Memory, seen: ReadPlan, request: Request
) -> None:
    """Remember a read, neither of whose makers looks back, if it was a step and all is finite."""
    whole = memory.nonfinite_keys is None and memory.nonfinite_values is None
    # Binding another rule may draw from a generator, which must not be done twice for one read.
    step = SingleQuery in seen.cache and type(request.rule) is SoftmaxRule
    if step and whole and not seen.is_vector and not seen.may_have_empty_rows:
        seen.cached_step = CachedStep(score, select, request.view.at_step(0))
