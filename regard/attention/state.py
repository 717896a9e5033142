"""What goes from one step to the next: explicit, passed on, never kept on a module."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Int
from torch import Tensor

from regard.attention.core.axes import Prepared, StepState, Weights
from regard.attention.core.errors import DeviceError, DtypeError, ShapeError, StateError, shown
from regard.attention.core.records import record, static, tree_map
from regard.attention.kernels import Request


class Stateful(ABC):
    """A score or a selection that needs the weights of the steps before.

    Its trace is advanced by reading alone. Over many queries it is a scan: one step a query.
    """

    looks_back = False

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        cls.looks_back = True  # a class that inherits two has it, in whichever order

    def state_key(self) -> str:
        """What a state is told apart by: another mechanism's is refused."""
        return type(self).__name__

    @abstractmethod
    def start(self, prepared: Prepared, shape: tuple[int, ...]) -> StepState:
        """What it remembers before the first step, for `shape` `(*batch, query, key)`."""

    @abstractmethod
    def advance(self, trace: StepState, weights: Weights, request: Request) -> StepState:
        """What it remembers after a step that read with these weights, before dropout."""


@record
class State:
    """What one step hands to the next: `reading.state` is the next `read`'s `state`."""

    score: StepState
    selection: StepState
    step: int = static(default=0)
    """How many queries have been read."""

    owners: tuple[str, ...] = static(default=())
    """Who looks back with it."""

    def reorder(self, index: Int[Tensor, "..."]) -> "State":
        """The state of other beams; see `reordered`."""
        check_beams(index)
        return tree_map(self, lambda tensor: reordered(tensor, index))


START = State({}, {})
"""Before the first step, where nobody needs a state."""


def reordered(tensor: Tensor, index: Int[Tensor, "..."]) -> Tensor:
    """A tensor with its batch axes chosen anew.

    An index `(n,)` chooses along the first axis. An index `(batch, n)` chooses along the second,
    for each item of the first: beams within their sentence. What all share (size 1) stays.
    """
    axis = index.ndim - 1
    if tensor.ndim < axis + 3 or tensor.shape[axis] == 1:
        return tensor  # it has no such batch axis, or one that all share
    if tensor.device != index.device:
        raise DeviceError(
            f"the index of beams is on {index.device} but they are on {tensor.device}. "
            f"Move it: index.to({str(tensor.device)!r})."
        )
    if axis == 1 and len(index) != len(tensor) != 1:
        raise ShapeError(
            f"the index chooses beams of {len(index)} items but there are {len(tensor)}. "
            f"Give it the shape ({len(tensor)}, n)."
        )
    try:
        if axis == 0:
            return tensor.index_select(0, index)
        items = tensor.expand(len(index), *tensor.shape[1:])
        return items[torch.arange(len(index), device=index.device)[:, None], index]
    except IndexError:
        raise ShapeError(
            f"beams from {int(index.min())} to {int(index.max())} were chosen but there are "
            f"{tensor.shape[axis]}. Beams go from 0 to {tensor.shape[axis] - 1}."
        ) from None


def check_beams(index: Int[Tensor, "..."]) -> None:
    """Raise unless it chooses beams: whole numbers `(n,)` or `(batch, n)`."""
    if not isinstance(index, Tensor) or index.dtype not in (torch.int64, torch.int32):
        given = index.dtype if isinstance(index, Tensor) else shown(index)
        raise DtypeError(
            f"beams are chosen by whole numbers, not by {given}. Pass a tensor of torch.long."
        )
    if index.ndim not in (1, 2):
        raise ShapeError(
            f"beams are chosen by an index of shape (n,) or (batch, n), not {tuple(index.shape)}. "
            "Give one number for each beam."
        )


def state_keys(*parts: object) -> tuple[str, ...]:
    """What a state is of: the names of those that look back."""
    # To ask isinstance of an abstract class takes longer than all else that a step does here.
    return tuple([p.state_key() for p in parts if getattr(type(p), "looks_back", False)])  # type: ignore[attr-defined]


def check_state(
    state: State, needed: tuple[str, ...], shape: tuple[int, ...], device: torch.device
) -> None:
    """Raise unless the state is of those that need it, for `shape` `(*batch, query, key)`."""
    if not isinstance(state, State):
        raise StateError(f"{shown(state)} is not a state. Pass the last reading's: reading.state.")
    if state.owners != needed:
        given, wanted = (" and ".join(names) or "nothing" for names in (state.owners, needed))
        raise StateError(
            f"the state is of {given} but this attention looks back by {wanted}. "
            "Pass what its own last read gave, reading.state, or none to begin anew."
        )
    fits = (*shape[:-2], 1, shape[-1])
    for name, trace in (*state.score.items(), *state.selection.items()):
        own = tuple(trace.shape)
        if len(own) != len(fits) or any(a not in (1, b) for a, b in zip(own, fits, strict=True)):
            raise StateError(
                f"the state's {name!r} has shape {own} but this batch and these keys need {fits}. "
                "Pass a state of the same batch and memory, or none to begin anew."
            )
        if trace.device != device:
            raise DeviceError(
                f"the state is on {trace.device} but queries on {device}. Read on one device."
            )
