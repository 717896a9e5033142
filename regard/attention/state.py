"""What goes from one step to the next: explicit, passed on, never kept on a module."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Int
from torch import Tensor

from regard.attention.axes import Prepared, Trace, Weights
from regard.attention.errors import ShapeError
from regard.attention.kernels import Request
from regard.attention.records import mapped, record, static


class LooksBack(ABC):
    """A score or a selection that needs the weights of the steps before.

    Its trace is advanced by reading alone. Over many queries it is a scan: one step a query.
    """

    @abstractmethod
    def start(self, prepared: Prepared, shape: tuple[int, ...]) -> Trace:
        """What it remembers before the first step, for `shape` `(*batch, query, key)`."""

    @abstractmethod
    def advance(self, trace: Trace, weights: Weights, request: Request) -> Trace:
        """What it remembers after a step that read with these weights, before dropout."""


@record
class State:
    """What one step hands to the next: `reading.state` is the next `read`'s `state`."""

    score: Trace
    selection: Trace
    step: int = static(default=0)
    """How many queries have been read."""

    def reorder(self, index: Int[Tensor, "..."]) -> "State":
        """The state of other beams; see `reordered`."""
        return mapped(self, lambda tensor: reordered(tensor, index))


def reordered(tensor: Tensor, index: Int[Tensor, "..."]) -> Tensor:
    """A tensor with its batch axes chosen anew.

    An index `(n,)` chooses along the first axis. An index `(batch, n)` chooses along the second,
    for each item of the first: beams within their sentence. What all share (size 1) stays.
    """
    axis = index.ndim - 1
    if axis > 1 or axis < 0:
        raise ShapeError(
            f"beams are chosen by an index of shape (n,) or (batch, n), not {tuple(index.shape)}."
        )
    if tensor.shape[axis] == 1:
        return tensor
    if axis == 0:
        return tensor.index_select(0, index)
    return tensor[torch.arange(len(index), device=index.device)[:, None], index]
