"""The reference: plain PyTorch for every request, which the other kernels are tested against."""

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
"""How many elements are allocated at once; a larger read is done in blocks of rows."""

DISTANCE_BLOCK = 1 << 20
"""The same for distances in C, where page faults would take as long as computing them."""


class Reference:
    """Score every pair, select, sum; in blocks of rows, to bound memory."""

    def refusals(self, request: Request) -> list[str]:
        """None: the reference never refuses."""
        return []

    def prefers(self, request: Request) -> bool:
        """Always: it comes last."""
        return True

    def __call__(self, request: Request) -> tuple[Context, Weights | None]:
        return blockwise(request, _scores)


def blockwise(
    request: Request, scores: Callable[[Comparison], Scores]
) -> tuple[Context, Weights | None]:
    """Score, select and sum; in blocks of rows, to bound memory."""
    rows = request.shape[-2]
    distances = isinstance(request.comparison, GaussianComparison | InverseDistanceComparison)
    in_c = distances and request.comparison.width == 1
    elements = min(DISTANCE_BLOCK, BLOCK) if in_c else BLOCK
    block = max(1, elements // max(1, request.shape.numel() // max(1, rows)))
    if rows <= block:
        return _read(request, scores)
    # Any selection is exact in blocks of rows: it takes one row at a time.
    parts = torch.arange(rows, device=request.values.device).split(block)
    return torch.cat([_read(request.rows(part), scores)[0] for part in parts], -2), None


def _read(request: Request, scores: Callable[[Comparison], Scores]) -> tuple[Context, Weights]:
    weights = request.select(scores(request.comparison))
    context = matmul(request.rule.apply_dropout(weights), upcast(request.values))
    return context.to(request.values.dtype), weights


def _scores(comparison: Comparison) -> Scores:
    """All scores; in parts of the keys if a comparison allocates a vector for each pair."""
    pairs = max(1, comparison.shape.numel())
    keys = comparison.shape[-1]
    if pairs * comparison.width <= BLOCK:
        return comparison.scores()
    part = max(1, keys * BLOCK // (pairs * comparison.width))
    starts = range(0, keys, part)
    scores: list[Tensor] = [comparison.columns(slice(at, at + part)).scores() for at in starts]
    return torch.cat(scores, -1)
