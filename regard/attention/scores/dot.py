"""Dot products: the angle and the length of queries and keys together."""

import math

from regard.attention.core.axes import Prepared, Queries, StepState
from regard.attention.core.options import check_number
from regard.attention.core.parameters import scalar, snapshot
from regard.attention.kernels import Comparison
from regard.attention.kernels import DotComparison as Comparing
from regard.attention.scores.base import Score, same_size


class Dot(Score):
    """e = qᵀk (Luong 2015, section 3.1, "dot")."""

    compares = Comparing

    def compare(self, queries: Queries, prepared: Prepared, trace: StepState) -> Comparison:
        same_size(self, queries, prepared)
        return Comparing(queries, prepared["keys"])


class ScaledDot(Score):
    """e = qᵀk · scale (Vaswani 2017, eq. 1), by default 1/√n for vectors of size n.

    Args:
        scale: Another factor than 1/√n.
        learned: Multiply by a factor that is learned, 1 at first.
    """

    compares = Comparing

    def __init__(self, scale: float | None = None, *, learned: bool = False) -> None:
        super().__init__()
        self.scale = None if scale is None else check_number("scale", scale)
        self.factor = scalar(1.0) if learned else None

    def compare(self, queries: Queries, prepared: Prepared, trace: StepState) -> Comparison:
        same_size(self, queries, prepared)
        scale = 1 / math.sqrt(max(1, queries.shape[-1])) if self.scale is None else self.scale
        factor = None if self.factor is None else snapshot(self.factor, queries)
        return Comparing(queries, prepared["keys"], scale, factor)

    def extra_repr(self) -> str:
        return f"scale={self.scale}, learned={self.factor is not None}"
