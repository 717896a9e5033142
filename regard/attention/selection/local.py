"""Local attention: a window around one position (Luong 2015, section 3.2)."""

import torch

from regard.attention.core.axes import Queries, StepState
from regard.attention.core.numerics import upcast
from regard.attention.core.options import check_int, check_positive
from regard.attention.core.parameters import check_size, matrix, project
from regard.attention.kernels import FixedWindowRule, GaussianWindowRule, Rule, View
from regard.attention.selection.base import Selection, check_dropout


class LocalMonotonic(Selection):
    """local-m: softmax over the keys at most `window` positions from p_t = t.

    The t-th query reads around the t-th key, both counted from the first; step by step, the
    state counts the queries. Past the last key by more than the window, nothing is read.

    Args:
        window: D: keys from p_t − D to p_t + D are read.
        dropout: Probability with which a weight is dropped from the context in training.
    """

    def __init__(self, window: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.window = check_int("window", window)
        self.dropout = check_dropout(dropout)

    def bind(self, queries: Queries, view: View, state: StepState) -> Rule:
        return FixedWindowRule(self.window, view.step, self.dropout if self.training else 0.0)

    def extra_repr(self) -> str:
        return f"window={self.window}, dropout={self.dropout}"


class LocalPredictive(Selection):
    """local-p: p_t = S · sigmoid(vᵀ tanh(W q)), softmax in its window times a Gaussian (eq. 9, 10).

    S is the number of keys that the query may read. The weights are not normalized again.

    Args:
        query_size: Size of a query.
        window: D: keys from p_t − D to p_t + D are read.
        hidden_size: Rows of W; as many as the query's size unless given.
        sigma: Width of the Gaussian; D/2 unless given, as in the paper.
        dropout: Probability with which a weight is dropped from the context in training.
    """

    def __init__(
        self,
        query_size: int,
        window: int,
        *,
        hidden_size: int | None = None,
        sigma: float | None = None,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.query_size, self.window = query_size, check_int("window", window)
        self.sigma = max(window, 1) / 2 if sigma is None else check_positive("sigma", sigma)
        self.dropout = check_dropout(dropout)
        hidden_size = query_size if hidden_size is None else hidden_size
        self.weight = matrix("LocalPredictive's weight", hidden_size, query_size)
        self.v = matrix("LocalPredictive's v", 1, hidden_size)

    def bind(self, queries: Queries, view: View, state: StepState) -> Rule:
        check_size("LocalPredictive", "queries", queries.shape[-1], self.query_size)
        # A position among a thousand keys does not fit into bfloat16.
        with torch.autocast(queries.device.type, enabled=False):
            hidden = torch.tanh(project(upcast(queries), upcast(self.weight)))
            share = torch.sigmoid(project(hidden, upcast(self.v)))
        centres = view.visible_counts() * share
        return GaussianWindowRule(
            centres, self.window, self.sigma, self.dropout if self.training else 0.0
        )

    def extra_repr(self) -> str:
        return f"query_size={self.query_size}, window={self.window}, sigma={self.sigma}"
