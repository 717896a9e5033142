"""How near a key is: interpolation between known points, and kernel regression."""

import math

import torch

from regard.attention.core.axes import Prepared, Queries, StepState
from regard.attention.core.options import check_number, check_positive
from regard.attention.core.parameters import scalar, snapshot
from regard.attention.kernels import Comparison, GaussianComparison, InverseDistanceComparison
from regard.attention.scores.base import Score, same_size

NEAREST = 1e-18
"""The square of a smaller distance is 0 in float32."""


class InverseDistance(Score):
    """e = 1 / ‖q − k‖: weather stations near by count most (after Shepard 1968).

    Shepard weighs by 1/‖q − k‖ itself; here it is a score, and the selection makes it a weight.

    Args:
        floor: Distances below it count as it, so that e is at most 1/floor. There, q = k
            included, the score is 1/floor and its gradient is 0.
    """

    compares = InverseDistanceComparison

    def __init__(self, floor: float = 1e-3) -> None:
        super().__init__()
        needed = f"a distance of at least {NEAREST:g}: 1/0 has no value"
        self.floor = check_number("floor", floor, needed, lambda given: given >= NEAREST)

    def compare(self, queries: Queries, prepared: Prepared, trace: StepState) -> Comparison:
        same_size(self, queries, prepared)
        return InverseDistanceComparison(queries, prepared["keys"], self.floor)

    def extra_repr(self) -> str:
        return f"floor={self.floor}"


class Gaussian(Score):
    """e = −‖q − k‖² / 2σ²: with softmax, kernel regression (Nadaraya 1964; Watson 1964).

    Args:
        sigma: σ, greater than 0.
        learned: Learn σ, through its logarithm, from this value on.
    """

    compares = GaussianComparison

    def __init__(self, sigma: float = 1.0, *, learned: bool = False) -> None:
        super().__init__()
        self.sigma = check_positive("sigma", sigma)
        self.log_sigma = scalar(math.log(sigma)) if learned else None

    def compare(self, queries: Queries, prepared: Prepared, trace: StepState) -> Comparison:
        same_size(self, queries, prepared)
        if self.log_sigma is None:
            at_least = torch.promote_types(queries.dtype, torch.float32)
            shape, device = [1] * queries.ndim, queries.device
            precision = torch.full(shape, self.sigma**-2, dtype=at_least, device=device)
        else:
            precision = (snapshot(self.log_sigma, queries) * -2).exp()
        return GaussianComparison(queries, prepared["keys"], precision)

    def extra_repr(self) -> str:
        return f"sigma={self.sigma}, learned={self.log_sigma is not None}"
