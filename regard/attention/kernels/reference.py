"""The plain way: takes every request, and is the truth that the fast ways are held to."""

from collections.abc import Callable

import torch
from torch import Tensor

from regard.attention.core.axes import Context, Scores, Weights
from regard.attention.core.numerics import matmul, upcast
from regard.attention.kernels.comparison import (
    Comparison,
    GaussianComparison,
    InverseDistanceComparison,
)
from regard.attention.kernels.request import Request

BLOCK = 1 << 24
"""How many numbers are held at once; a larger read is taken in blocks of rows."""

NEAR = 1 << 20
"""The same where distances are only read, and handing out pages would take as long as they do."""


class Reference:
    """Score every pair, select, sum: in blocks of rows where that would be too much at once."""

    def refusals(self, request: Request) -> list[str]:
        """None: the reference never refuses."""
        return []

    def prefers(self, request: Request) -> bool:
        """Always: it is asked last."""
        return True

    def __call__(self, request: Request) -> tuple[Context, Weights | None]:
        return blockwise(request, _scores)


def blockwise(
    request: Request, scores: Callable[[Comparison], Scores]
) -> tuple[Context, Weights | None]:
    """Score, select and sum, in blocks of rows where all at once would be too much."""
    rows = request.shape[-2]
    near = (
        isinstance(request.comparison, GaussianComparison | InverseDistanceComparison)
        and request.comparison.width == 1
    )  # in C
    most = min(NEAR, BLOCK) if near else BLOCK
    block = max(1, most // max(1, request.shape.numel() // max(1, rows)))
    if rows <= block:
        return _whole(request, scores)
    # Any selection is exact in blocks of rows: it looks at one row at a time.
    parts = torch.arange(rows, device=request.values.device).split(block)
    return torch.cat([_whole(request.rows(part), scores)[0] for part in parts], -2), None


def _whole(request: Request, scores: Callable[[Comparison], Scores]) -> tuple[Context, Weights]:
    weights = request.select(scores(request.comparison))
    context = matmul(request.rule.apply_dropout(weights), upcast(request.values))
    return context.to(request.values.dtype), weights


def _scores(comparison: Comparison) -> Scores:
    """All scores; a comparison that holds a vector for each pair goes through the keys in parts."""
    pairs = max(1, comparison.shape.numel())
    keys = comparison.shape[-1]
    if pairs * comparison.width <= BLOCK:
        return comparison.scores()
    part = max(1, keys * BLOCK // (pairs * comparison.width))
    starts = range(0, keys, part)
    scores: list[Tensor] = [comparison.columns(slice(at, at + part)).scores() for at in starts]
    return torch.cat(scores, -1)
