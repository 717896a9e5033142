"""Dot products of queries and keys."""

import math

from regard.attention.core.axes import Prepared, Queries, StepState
from regard.attention.core.options import check_number
from regard.attention.core.parameters import scalar, snapshot
from regard.attention.kernels import Comparison, DotComparison
from regard.attention.scores.base import Score, check_same_size


class Dot(Score):
    """e = qᵀk (Luong 2015, section 3.1, "dot")."""

    compares = DotComparison

    def compare(self, queries: Queries, prepared: Prepared, state: StepState) -> Comparison:
        check_same_size(self, queries, prepared)
        return DotComparison(queries, prepared["keys"])


class ScaledDot(Score):
    """e = qᵀk · scale (Vaswani 2017, eq. 1), by default 1/√n for vectors of size n.

    Args:
        scale: A factor in the place of 1/√n.
        learned: Multiply by a learned factor, initially 1.
    """

    compares = DotComparison

    def __init__(self, scale: float | None = None, *, learned: bool = False) -> None:
        super().__init__()
        self.scale = None if scale is None else check_number("scale", scale)
        self.factor = scalar(1.0) if learned else None

    def compare(self, queries: Queries, prepared: Prepared, state: StepState) -> Comparison:
        check_same_size(self, queries, prepared)
        scale = 1 / math.sqrt(max(1, queries.shape[-1])) if self.scale is None else self.scale
        factor = None if self.factor is None else snapshot(self.factor, queries)
        return DotComparison(queries, prepared["keys"], scale, factor)

    def extra_repr(self) -> str:
        return f"scale={self.scale}, learned={self.factor is not None}"
