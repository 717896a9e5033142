"""softmax(−‖q − k‖² · precision / 2) v and softmax(1 / ‖q − k‖) v of all pairs, in one call of C.

Scores and weights of a block of rows stay in the cache: nothing of the size of all pairs is
allocated. Without a gradient and without a mask; for a Gaussian the sdpa kernel has both.
"""

import torch

from regard.attention.core.axes import Context, Weights
from regard.attention.kernels.additive_backends import shared_batch
from regard.attention.kernels.comparison import GaussianComparison, InverseDistanceComparison
from regard.attention.kernels.request import EMPTY, Request
from regard.attention.kernels.rule import SoftmaxRule
from regard.attention.kernels.squared_distances import MAX_TRANSPOSED_KEYS
from regard.native import distance, loader
from regard.native.eligibility import refusals

FusedDistance = GaussianComparison | InverseDistanceComparison

MIN_PAIRS = {GaussianComparison: (0, 0), InverseDistanceComparison: (1 << 14, 1 << 14)}
"""From so many pairs an item on, with AVX2 and with AVX-512, this is the fastest kernel."""

MAX_SIZE = 256
"""Vectors up to so long stay in the cache."""


class DistanceSoftmax:
    """Softmax of Gaussians and inverse distances, in C where it is usable."""

    def refusals(self, request: Request) -> list[str]:
        """Why this request cannot be answered here; empty if it can."""
        comparison = request.comparison
        if not isinstance(comparison, FusedDistance):
            return [f"scores by {type(comparison).__name__} are not distances"]
        reasons = refusals(comparison.queries, comparison.keys, request.values)
        if not isinstance(request.rule, SoftmaxRule) or request.rule.dropout:
            reasons.append("it selects by softmax, without dropout")
        if comparison.bias is not None or request.view.mask is not None:
            reasons.append("it takes neither a bias nor a mask")
        if request.wants_gradient:
            reasons.append("it has no gradient")
        if isinstance(comparison, GaussianComparison) and comparison.precision.numel() != 1:
            reasons.append("it takes one width for all")
        if request.is_empty or request.shape[-1] > MAX_TRANSPOSED_KEYS:
            reasons.append(
                EMPTY if request.is_empty else f"it is for up to {MAX_TRANSPOSED_KEYS} keys"
            )
        return reasons

    def prefers(self, request: Request) -> bool:
        """Is this faster than what torch has? By measurement, with AVX2 or AVX-512."""
        comparison, pairs = request.comparison, request.view.pairs
        if not isinstance(comparison, FusedDistance) or torch.compiler.is_compiling():
            return False
        level = loader.level()
        if level == 0 or pairs.height * pairs.width < MIN_PAIRS[type(comparison)][level - 1]:
            return False
        size = max(comparison.keys.shape[-1], request.values.shape[-1])
        return size <= MAX_SIZE and not self.refusals(request)

    def __call__(self, request: Request) -> tuple[Context, Weights | None]:
        comparison, rule = request.comparison, request.rule
        assert isinstance(comparison, FusedDistance)
        assert isinstance(rule, SoftmaxRule)
        *batch, rows, _ = request.shape
        size = comparison.queries.shape[-1]
        queries = comparison.queries.expand(*batch, rows, size).reshape(-1, rows, size)
        keys = shared_batch(comparison.keys, tuple(batch))
        values = shared_batch(request.values, tuple(batch))
        context = distance.distance_softmax(
            queries, (keys.tensor, values.tensor), (keys.which, values.which),
            _pairwise(comparison, rule.temperature),
        )  # fmt: skip
        return context.view(*batch, rows, values.tensor.shape[-1]), None


def _pairwise(comparison: FusedDistance, temperature: float) -> distance.Pairwise:
    if isinstance(comparison, GaussianComparison):
        factor = float(comparison.precision) * -0.5
        return distance.Pairwise(distance.GAUSSIAN, factor / temperature)
    return distance.Pairwise(distance.INVERSE, 1 / temperature, comparison.floor)
