"""Dot products and distances of all pairs, selected by softmax and read, in one call in C.

Scores and weights of a block of rows stay in the cache: nothing of the size of all pairs is held.
Without a gradient and without a mask; the sdpa kernel has both.
"""

import torch
from torch import Tensor

from regard.attention.core.axes import Context, Weights
from regard.attention.kernels.additive_backends import shared_batch
from regard.attention.kernels.comparison import (
    MAX_TRANSPOSED_KEYS,
    DotComparison,
    GaussianComparison,
    InverseDistanceComparison,
)
from regard.attention.kernels.request import EMPTY, Request
from regard.attention.kernels.rule import SoftmaxRule
from regard.native import distance, loader
from regard.native.eligibility import refusals

KINDS = (DotComparison, GaussianComparison, InverseDistanceComparison)
LEAST = {
    DotComparison: (0, 1 << 15, 1 << 18),
    GaussianComparison: (0, 0, 0),
    InverseDistanceComparison: (0, 1 << 14, 1 << 14),
}
"""From so many pairs on, by the level of processor, an item is read more quickly here than by
others. Of dot products torch has a fused kernel, too."""

WIDEST = 256
"""Vectors up to so long stay in the cache."""


class DistanceSoftmax:
    """Softmax of dot products, Gaussians and inverse distances, in C where it was built."""

    def refusals(self, request: Request) -> list[str]:
        """Why this request cannot be answered here; empty if it can."""
        comparison = request.comparison
        if not isinstance(comparison, KINDS):
            return [f"scores by {type(comparison).__name__} are neither dot products nor distances"]
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
        """Is this quicker than what torch has? By measurement, where there are wide vectors."""
        comparison, pairs = request.comparison, request.view.pairs
        if not isinstance(comparison, KINDS) or torch.compiler.is_compiling():
            return False
        level = loader.level()
        if level == 0 or pairs.height * pairs.width < LEAST[type(comparison)][level]:
            return False
        narrow = max(comparison.keys.shape[-1], request.values.shape[-1]) <= WIDEST
        return narrow and not self.refusals(request)

    def __call__(self, request: Request) -> tuple[Context, Weights | None]:
        comparison, rule, values = request.comparison, request.rule, request.values
        assert isinstance(
            comparison, DotComparison | GaussianComparison | InverseDistanceComparison
        )
        assert isinstance(rule, SoftmaxRule)
        *batch, rows, _ = request.shape
        queries, kind, factor, floor = _arguments(comparison)
        queries = queries.expand(*batch, *queries.shape[-2:]).reshape(-1, *queries.shape[-2:])
        own = shared_batch(comparison.keys, tuple(batch)), shared_batch(values, tuple(batch))
        how = distance.Pairwise(kind, factor / rule.temperature, floor)
        context = distance.distance_softmax(
            queries, (own[0].tensor, own[1].tensor), (own[0].which, own[1].which), how
        )
        return context.view(*batch, rows, values.shape[-1]), None


def _arguments(
    comparison: DotComparison | GaussianComparison | InverseDistanceComparison,
) -> tuple[Tensor, int, float, float]:
    """Queries, the kind of score, its factor and its floor."""
    queries = comparison.queries
    if isinstance(comparison, DotComparison):
        if comparison.factor is None:
            return queries, distance.DOT, comparison.scale, 0.0
        return comparison.scaled_queries(), distance.DOT, 1.0, 0.0
    if isinstance(comparison, GaussianComparison):
        return queries, distance.GAUSSIAN, float(comparison.precision) * -0.5, 0.0
    return queries, distance.INVERSE, 1.0, comparison.floor
