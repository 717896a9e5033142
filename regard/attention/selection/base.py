"""What a selection is: scores → how much of each key is read."""

from abc import ABC, abstractmethod

from torch import nn

from regard.attention.axes import Queries, Trace
from regard.attention.errors import OptionError
from regard.attention.kernels import Rule, View


class Selection(nn.Module, ABC):
    """How much of each may be read? A module that becomes a `Rule` for one read."""

    @abstractmethod
    def bind(self, queries: Queries, view: View, trace: Trace) -> Rule:
        """Fix everything for one read: parameters, mode, step; what is drawn is drawn here."""


def dropout_rate(rate: float) -> float:
    """Raise unless it is a share."""
    if not 0 <= rate < 1:
        raise OptionError(f"dropout is {rate}. Give a share of at least 0 and below 1.")
    return rate


def positive(name: str, value: float) -> float:
    """Raise unless it is above 0."""
    if not value > 0:
        raise OptionError(f"{name} is {value}. Give a number greater than 0.")
    return value
