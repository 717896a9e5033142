"""Softmax: soft attention."""

from regard.attention.core.axes import Queries, StepState
from regard.attention.core.options import check_positive
from regard.attention.kernels import Rule, SoftmaxRule, View
from regard.attention.selection.base import Selection, check_dropout


class Softmax(Selection):
    """α = exp(e / temperature) / Σ exp(e / temperature) (Bahdanau 2015, eq. 6).

    Args:
        temperature: Below 1 sharper, above 1 flatter.
        dropout: Probability with which a weight is dropped from the context in training.
    """

    def __init__(self, temperature: float = 1.0, dropout: float = 0.0) -> None:
        super().__init__()
        self.temperature = check_positive("temperature", temperature)
        self.dropout = check_dropout(dropout)

    def bind(self, queries: Queries, view: View, state: StepState) -> Rule:
        return SoftmaxRule(self.temperature, self.dropout if self.training else 0.0)

    def extra_repr(self) -> str:
        return f"temperature={self.temperature}, dropout={self.dropout}"
