"""What a selection is: scores → how much of each key is read."""

from abc import ABC, abstractmethod

from torch import nn

from regard.attention.core.axes import Queries, StepState
from regard.attention.core.options import check_number
from regard.attention.kernels import Rule, View


class Selection(nn.Module, ABC):
    """How much of each may be read? A module that becomes a `Rule` for one read."""

    @abstractmethod
    def bind(self, queries: Queries, view: View, trace: StepState) -> Rule:
        """Fix everything for one read: parameters, mode, step; what is drawn is drawn here."""


def dropout_rate(rate: float) -> float:
    """Raise unless it is a share."""
    return check_number(
        "dropout", rate, "a share of at least 0 and below 1", lambda given: 0 <= given < 1
    )
