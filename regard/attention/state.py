"""From one step to the next: the state that is passed on, and the plan that a memory caches.

Neither is ever stored on a module.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor, nn

from regard.attention.core.axes import Prepared, StepState, Weights
from regard.attention.core.errors import DeviceError, DtypeError, ShapeError, StateError, shown
from regard.attention.core.records import record, static, tree_map
from regard.attention.core.validation import broadcasts_to
from regard.attention.kernels import Request, View


class Stateful(ABC):
    """A score or a selection that needs the weights of earlier steps.

    Its state is advanced by reading alone. Over many queries it is a scan: one step a query.
    """

    is_stateful = False

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        cls.is_stateful = True  # whatever the order of a subclass's bases

    def state_key(self) -> str:
        """A name that its states carry: those of another mechanism are refused."""
        return type(self).__name__

    @abstractmethod
    def start(self, prepared: Prepared, shape: tuple[int, ...]) -> StepState:
        """The state before the first step, for `shape` `(*batch, query, key)`."""

    @abstractmethod
    def advance(self, state: StepState, weights: Weights, request: Request) -> StepState:
        """The state after a step that read with these weights, before dropout."""


@record
class State:
    """The state after a step: `reading.state` is the next `read`'s `state`."""

    score: StepState
    selection: StepState
    step: int = static(default=0)
    """How many queries have been read."""

    owners: tuple[str, ...] = static(default=())
    """The `state_key` of each part that is stateful."""

    def reorder(self, index: Int[Tensor, "..."]) -> "State":
        """The state of other beams; see `reorder_batch`."""
        check_beams(index)
        return tree_map(self, lambda tensor: reorder_batch(tensor, index))


START = State({}, {})
"""Before the first step, where no part is stateful."""


@dataclass(slots=True)
class ReadPlan:
    """How queries of one shape read a memory: checked once, reused at every step of a decoder."""

    view: View
    """Which pairs are compared, under which mask, at step 0; kernels cache what they find in it."""

    shape: tuple[int, ...]
    """`(*batch, query, key)`, without axes of heads."""

    dtype: torch.dtype
    """Of the memory: queries are cast to it."""

    is_vector: bool
    """Is the query a bare vector, answered with a bare vector?"""

    may_have_empty_rows: bool
    """May a query be fully masked?"""

    score: nn.Module | None = None
    select: nn.Module | None = None
    """Whose next read skips the checks: see `fast_paths.cached_step`."""

    def as_sequence(self, queries: Tensor) -> Tensor:
        """The queries with their axis, in the memory's dtype."""
        queries = queries if queries.dtype == self.dtype else queries.to(self.dtype)
        return queries[None] if self.is_vector else queries


def reorder_batch(tensor: Tensor, index: Int[Tensor, "..."]) -> Tensor:
    """A tensor with other items of its batch.

    An index `(n,)` selects along the first axis. An index `(batch, n)` selects along the second,
    for each item of the first: beams within their sentence. An axis that broadcasts (size 1) stays.
    """
    axis = index.ndim - 1
    if tensor.ndim < axis + 3 or tensor.shape[axis] == 1:
        return tensor  # it has no such batch axis, or one that broadcasts
    if tensor.device != index.device:
        raise DeviceError(
            f"the index of beams is on {index.device} but they are on {tensor.device}. "
            f"Move it: index.to({str(tensor.device)!r})."
        )
    if axis == 1 and len(index) != len(tensor) != 1:
        raise ShapeError(
            f"the index selects beams of {len(index)} items but there are {len(tensor)}. "
            f"Give it the shape ({len(tensor)}, n)."
        )
    try:
        if axis == 0:
            return tensor.index_select(0, index)
        items = tensor.expand(len(index), *tensor.shape[1:])
        return items[torch.arange(len(index), device=index.device)[:, None], index]
    except IndexError:
        raise ShapeError(
            f"beams from {int(index.min())} to {int(index.max())} were selected but there are "
            f"{tensor.shape[axis]}. Beams go from 0 to {tensor.shape[axis] - 1}."
        ) from None


def check_beams(index: Int[Tensor, "..."]) -> None:
    """Raise unless it is an index of beams: integers `(n,)` or `(batch, n)`."""
    if not isinstance(index, Tensor) or index.dtype not in (torch.int64, torch.int32):
        given = index.dtype if isinstance(index, Tensor) else shown(index)
        raise DtypeError(
            f"beams are selected by whole numbers, not by {given}. Pass a tensor of torch.long."
        )
    if index.ndim not in (1, 2):
        raise ShapeError(
            "beams are selected by an index of shape (n,) or (batch, n), not "
            f"{tuple(index.shape)}. Give one number for each beam."
        )


def state_keys(*parts: object) -> tuple[str, ...]:
    """The keys of those parts that are stateful."""
    # isinstance of an abstract class takes longer than all else that a step does here.
    return tuple([p.state_key() for p in parts if getattr(type(p), "is_stateful", False)])  # type: ignore[attr-defined]


def check_state(
    state: State, needed: tuple[str, ...], shape: tuple[int, ...], device: torch.device
) -> None:
    """Raise unless it is the state of these parts, for `shape` `(*batch, query, key)`."""
    if not isinstance(state, State):
        raise StateError(f"{shown(state)} is not a state. Pass the last reading's: reading.state.")
    if state.owners != needed:
        given, expected = (" and ".join(names) or "no part" for names in (state.owners, needed))
        raise StateError(
            f"this state belongs to {given}; this attention expects the state of {expected}. "
            "Pass the state of its own last read, reading.state, or None to start again."
        )
    expected_shape = (*shape[:-2], 1, shape[-1])
    for name, tensor in (*state.score.items(), *state.selection.items()):
        if not broadcasts_to(tensor.shape, expected_shape):
            raise StateError(
                f"the state's {name!r} has shape {tuple(tensor.shape)} but this batch and these "
                f"keys need {expected_shape}. "
                "Pass a state of the same batch and memory, or None to start again."
            )
        if tensor.device != device:
            raise DeviceError(
                f"the state is on {tensor.device} but queries on {device}. Read on one device."
            )
