"""The base of all selections: scores → how much of each key is read."""

from abc import ABC, abstractmethod

from torch import nn

from regard.attention.core.axes import Queries, StepState
from regard.attention.core.errors import OptionError, shown
from regard.attention.core.options import check_number
from regard.attention.kernels import Rule, View


class Selection(nn.Module, ABC):
    """How much of each may be read? A module that becomes a `Rule` for one read."""

    @abstractmethod
    def bind(self, queries: Queries, view: View, state: StepState) -> Rule:
        """Fix everything for one read: parameters, training mode, step, and the random draw."""


def as_selection(select: Selection) -> Selection:
    """The selection; raise if it is something else."""
    if isinstance(select, Selection):
        return select
    raise OptionError(
        f"{shown(select)} is not a selection. Pass an object of regard.selection, such as "
        "selection.Softmax() or selection.Sparsemax()."
    )


def check_dropout(rate: float) -> float:
    """Raise unless it is a probability below 1."""
    return check_number(
        "dropout", rate, "a probability of at least 0 and below 1", lambda given: 0 <= given < 1
    )
