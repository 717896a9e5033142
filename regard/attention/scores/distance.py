"""How near a key is: interpolation between known points, and kernel regression."""

import math

import torch

from regard.attention.axes import Prepared, Queries, Trace
from regard.attention.errors import OptionError
from regard.attention.kernels import Comparison, Gauss, Inverse
from regard.attention.parameters import scalar, snapshot
from regard.attention.scores.base import Score, same_size


class InverseDistance(Score):
    """e = 1 / ‖q − k‖ (Shepard 1968, the interpolating function): weather stations near by count.

    Args:
        floor: Distances below it count as it, so that e is at most 1/floor. There, q = k
            included, the score is 1/floor and its gradient is 0.
    """

    compares = Inverse

    def __init__(self, floor: float = 1e-3) -> None:
        super().__init__()
        if not floor > 0:
            raise OptionError(f"floor is {floor}; 1/0 has no value. Give a distance above 0.")
        self.floor = floor

    def compare(self, queries: Queries, prepared: Prepared, trace: Trace) -> Comparison:
        same_size(self, queries, prepared)
        return Inverse(queries, prepared["keys"], self.floor)

    def extra_repr(self) -> str:
        return f"floor={self.floor}"


class Gaussian(Score):
    """e = −‖q − k‖² / 2σ²: with softmax, kernel regression (Nadaraya 1964, eq. 2; Watson 1964).

    Args:
        sigma: σ, greater than 0.
        learned: Learn σ, through its logarithm, from this value on.
    """

    compares = Gauss

    def __init__(self, sigma: float = 1.0, *, learned: bool = False) -> None:
        super().__init__()
        if not sigma > 0:
            raise OptionError(f"sigma is {sigma}. Give a number greater than 0.")
        self.sigma = sigma
        self.log_sigma = scalar(math.log(sigma)) if learned else None

    def compare(self, queries: Queries, prepared: Prepared, trace: Trace) -> Comparison:
        same_size(self, queries, prepared)
        if self.log_sigma is None:
            at_least = torch.promote_types(queries.dtype, torch.float32)
            shape, device = [1] * queries.ndim, queries.device
            precision = torch.full(shape, self.sigma**-2, dtype=at_least, device=device)
        else:
            precision = (snapshot(self.log_sigma, queries.ndim) * -2).exp()
        return Gauss(queries, prepared["keys"], precision)

    def extra_repr(self) -> str:
        return f"sigma={self.sigma}, learned={self.log_sigma is not None}"
