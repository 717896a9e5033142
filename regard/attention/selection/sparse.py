"""Sparse selections: sparsemax and α-entmax, which give exact zeros."""

import math

import torch
from jaxtyping import Int
from torch import Tensor

from regard.attention.core.axes import Allowed, Queries, Scalar, Scores, StepState, Weights
from regard.attention.core.numerics import softmax, upcast
from regard.attention.core.options import check_number
from regard.attention.core.parameters import scalar, snapshot
from regard.attention.core.records import record, static
from regard.attention.kernels import Rule, View
from regard.attention.masks import PairIndex
from regard.attention.selection.base import Selection, check_dropout
from regard.attention.selection.entmax import entmax

MIN_ALPHA = 1.01
"""Of a learned α: at 1 the exponent 1 / (α − 1) would overflow."""


class Sparsemax(Selection):
    """α = the point of the simplex nearest to e (Martins 2016, eq. 2 and algorithm 1).

    Args:
        dropout: Probability with which a weight is dropped from the context in training.
    """

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = check_dropout(dropout)

    def bind(self, queries: Queries, view: View, state: StepState) -> Rule:
        return EntmaxRule(None, 2.0, self.dropout if self.training else 0.0)

    def extra_repr(self) -> str:
        return f"dropout={self.dropout}"


class Entmax(Selection):
    """α-entmax (Peters 2019, eq. 10): α = 1 is softmax, α = 2 is sparsemax, 1.5 lies between.

    Args:
        alpha: At least 1.
        learned: Learn α between 1 and 2 (Correia 2019), starting from this value.
        dropout: Probability with which a weight is dropped from the context in training.
    """

    def __init__(self, alpha: float = 1.5, *, learned: bool = False, dropout: float = 0.0) -> None:
        super().__init__()
        if learned:
            check_number(
                "alpha", alpha, "a number between 1 and 2, to be learned", lambda a: 1 < a < 2
            )
        self.alpha = check_number("alpha", alpha, "a finite number of at least 1", lambda a: a >= 1)
        self.raw_alpha = scalar(math.log((alpha - MIN_ALPHA) / (2 - alpha))) if learned else None
        self.dropout = check_dropout(dropout)

    def bind(self, queries: Queries, view: View, state: StepState) -> Rule:
        alpha = None
        if self.raw_alpha is not None:
            alpha = (
                MIN_ALPHA + (2 - MIN_ALPHA) * upcast(snapshot(self.raw_alpha, queries)).sigmoid()
            )
        return EntmaxRule(alpha, float(self.alpha), self.dropout if self.training else 0.0)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}, learned={self.raw_alpha is not None}, dropout={self.dropout}"


@record
class EntmaxRule(Rule):
    """α-entmax of the scores, with α a number or learned."""

    learned: Scalar | None
    alpha: float = static()
    dropout: float = static(default=0.0)

    def weights(self, scores: Scores, allowed: Allowed | None, pairs: PairIndex) -> Weights:
        if self.learned is None and self.alpha == 1.0:
            return softmax(scores, allowed)
        if allowed is not None:
            scores = scores.masked_fill(~allowed, -torch.inf)
        return entmax(scores, self.alpha if self.learned is None else self.learned)

    def rows(self, index: Int[Tensor, " row"], rows: int) -> Rule:
        return self
