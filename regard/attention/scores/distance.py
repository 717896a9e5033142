"""Scores by distance: interpolation between points, and kernel regression."""

import math

import torch

from regard.attention.core.axes import Prepared, Queries, StepState
from regard.attention.core.options import check_number, check_positive
from regard.attention.core.parameters import scalar, snapshot
from regard.attention.kernels import Comparison, GaussianComparison, InverseDistanceComparison
from regard.attention.scores.base import Score, check_same_size

MIN_DISTANCE = 1e-18
"""The square of a smaller distance is 0 in float32."""


class InverseDistance(Score):
    """e = 1 / ‖q − k‖: near weather stations count most (after Shepard 1968).

    Shepard's weights are 1/‖q − k‖ itself; here it is a score, which the selection normalizes.

    Args:
        floor: Smaller distances are clamped to it: there, q = k included, the score is 1/floor
            and its gradient is 0.
    """

    compares = InverseDistanceComparison

    def __init__(self, floor: float = 1e-3) -> None:
        super().__init__()
        needed = f"a distance of at least {MIN_DISTANCE:g}: 1/0 has no value"
        self.floor = check_number("floor", floor, needed, lambda given: given >= MIN_DISTANCE)

    def compare(self, queries: Queries, prepared: Prepared, state: StepState) -> Comparison:
        check_same_size(self, queries, prepared)
        return InverseDistanceComparison(queries, prepared["keys"], self.floor)

    def extra_repr(self) -> str:
        return f"floor={self.floor}"


class Gaussian(Score):
    """e = −‖q − k‖² / 2σ²: with softmax, kernel regression (Nadaraya 1964; Watson 1964).

    Args:
        sigma: σ, greater than 0.
        learned: Learn log σ, starting from this value.
    """

    compares = GaussianComparison

    def __init__(self, sigma: float = 1.0, *, learned: bool = False) -> None:
        super().__init__()
        self.sigma = check_positive("sigma", sigma)
        self.log_sigma = scalar(math.log(sigma)) if learned else None

    def compare(self, queries: Queries, prepared: Prepared, state: StepState) -> Comparison:
        check_same_size(self, queries, prepared)
        if self.log_sigma is None:
            at_least = torch.promote_types(queries.dtype, torch.float32)
            shape, device = [1] * queries.ndim, queries.device
            precision = torch.full(shape, self.sigma**-2, dtype=at_least, device=device)
        else:
            precision = (snapshot(self.log_sigma, queries) * -2).exp()
        return GaussianComparison(queries, prepared["keys"], precision)

    def extra_repr(self) -> str:
        return f"sigma={self.sigma}, learned={self.log_sigma is not None}"
