"""The next step of a decoder: a read like the last one of this memory, by the shortest way.

For so little work every check takes longer than the reading. What the last read found out is kept
in what it had in sight; here a read of the same kind goes from there straight to the kernel.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.attention.kernels import Request, Soft, Step, View, chosen
from regard.attention.looking import in_transform
from regard.attention.memory import Memory
from regard.attention.reading import Part, Reading
from regard.attention.scores import Score
from regard.attention.selection import Selection
from regard.attention.sight import Sight
from regard.attention.state import State

STEP = Step()


@dataclass(slots=True)
class Again:
    """Who read, neither of whom looks back, and with which view."""

    score: Score
    select: Selection
    view: View


def again(
    score: Score, select: Selection, queries: Tensor, memory: Memory, state: State | None
) -> Reading | None:
    """What these queries read, if the last such read was a step; None if all is to be checked."""
    if torch.is_grad_enabled() or torch.compiler.is_compiling() or type(queries) is not Tensor:
        return None
    seen: Sight | None = memory.sights.get((queries.shape, queries.dtype, queries.layout))
    like: Again | None = None if seen is None else seen.again
    if like is None or like.score is not score or like.select is not select:
        return None
    if not queries.is_cpu or in_transform() or torch.is_autocast_enabled("cpu") or chosen():
        return None
    view, step = like.view, 0
    if state is not None:
        if type(state) is not State or state.of:
            return None
        view, step = view.at_step(state.step), state.step
    comparison = score.compare(queries, memory.prepared, {})
    request = Request(comparison, select.bind(queries, view, {}), memory.values, view, memory.kept)
    if STEP.refusals(request):
        return None
    context, weights = STEP(request)
    return Reading(context, [Part(request, weights)], State({}, {}, step + 1))


def note(score: Score, select: Selection, memory: Memory, seen: Sight, request: Request) -> None:
    """Remember a read, neither of whose makers looks back, if it was a step and all is finite."""
    whole = memory.faulty_keys is None and memory.faulty_values is None
    # Binding another rule may draw from a generator, which must not be done twice for one read.
    step = Step in seen.known and type(request.rule) is Soft
    if step and whole and not seen.bare and not seen.some_blind:
        seen.again = Again(score, select, request.view.at_step(0))
