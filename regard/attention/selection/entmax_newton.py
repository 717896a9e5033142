"""Entmax by Newton's method: fast, but with data-dependent branches, and without autograd.

The weights are max(0, (α − 1) e − τ)^p with p = 1/(α − 1), and τ is such that they sum to 1. For
α ≤ 2 the p-norm of max(0, (α − 1) e − τ) is convex and decreasing in τ, so Newton steps from below
never overshoot the τ at which it is 1, and converge soon: each at least quarters the product of the
error and the slope. Nothing is sorted, but for the largest of few scores.

The sizes below were measured on a CPU.
"""

import torch
from torch import Tensor

SMALL, TOP_K = 1 << 13, 32
"""Up to so many scores, the top k of each row are sorted: fewer calls, which cost most there."""
LONG, BLOCK = 256, 8
"""Rows of so many keys start from the threshold of the maxima of blocks."""

Alpha = float | Tensor


def entmax(scores: Tensor, alpha: Alpha) -> Tensor:
    """α-entmax along the last axis, for α > 1; a row of nothing but −∞ has weights 0."""
    rows = scores.flatten(0, -2)
    if isinstance(alpha, Tensor):
        shared = alpha.numel() == 1
        alpha = float(alpha) if shared else alpha.expand(*scores.shape[:-1], 1).reshape(-1, 1)
    lowest = torch.finfo(rows.dtype).min  # −∞ − (−∞) would be NaN
    below = rows - rows.amax(-1, keepdim=True).clamp_(min=lowest)
    if not _is(alpha, 2.0):
        below.mul_(alpha - 1)
    bases = below.sub_(_threshold(below, alpha)).relu_()
    return _powers(bases, alpha).view(scores.shape)


def _powers(bases: Tensor, alpha: Alpha) -> Tensor:
    if _is(alpha, 2.0):
        return bases
    weights = bases.pow_(1 / (alpha - 1))
    if isinstance(alpha, float) and alpha > 2:
        return weights  # one near 0 may have a large error, which must not reach the others
    # The relative error of a power x^p is p times that of x.
    return weights.div_(_sum(weights).clamp_(min=0.5))


def _threshold(below: Tensor, alpha: Alpha) -> Tensor:
    """τ for scores times α − 1, whose maximum is 0: it lies between −1 and 0."""
    if isinstance(alpha, float) and alpha > 2:
        return _bisect(below, alpha)
    if below.numel() <= SMALL and (_is(alpha, 2.0) or _is(alpha, 1.5)):
        return _by_sorting(below, alpha)
    keys = below.shape[-1]
    if keys < LONG:
        return _newton(below, torch.full_like(below[:, :1], -1), alpha)
    maxima = below[:, : keys // BLOCK * BLOCK].unflatten(-1, (BLOCK, -1)).amax(-2)
    # The threshold of a subset is a lower bound; that of the largest scores is close.
    return _newton(below, _threshold(maxima, alpha), alpha)


def _newton(below: Tensor, threshold: Tensor, alpha: Alpha) -> Tensor:
    """Newton steps until all rows converge; once most have, the others go on alone."""
    tolerance, buffer = torch.finfo(below.dtype).eps / 2, torch.empty_like(below)
    while True:
        step = _newton_step(torch.sub(below, threshold, out=buffer).relu_(), alpha)
        threshold = threshold + step
        moving = (step > tolerance).squeeze(-1)
        count = int(moving.sum())
        if count == 0:
            return threshold
        if 4 * count < len(below):
            alpha = alpha[moving] if isinstance(alpha, Tensor) else alpha
            threshold[moving] = _newton(below[moving], threshold[moving], alpha)
            return threshold


def _newton_step(bases: Tensor, alpha: Alpha) -> Tensor:
    """The step from the threshold that gives these bases, which are overwritten."""
    if _is(alpha, 2.0):
        total, slope = _sum(bases), _sum(bases.sign_())
    elif _is(alpha, 1.5):
        slope, total = _sum(bases), _sum(bases.square_())
    else:
        weights = bases.pow(1 / (alpha - 1))
        total = _sum(weights)
        slope = _sum(weights.div_(bases.clamp_(min=torch.finfo(bases.dtype).tiny)))
    # The slope is 1 at least, but for a row of −∞ only.
    step = (total - total.pow(2 - alpha)).div_(slope.clamp_(min=1))
    return step.relu_()  # never down: with rounding, some rows would oscillate


def _by_sorting(below: Tensor, alpha: Alpha) -> Tensor:
    """The threshold of a row's top k; where the support is larger, Newton steps go on from it."""
    if below.shape[-1] <= TOP_K:
        return _of_sorted(below.sort(-1, descending=True).values, alpha)
    top = below.topk(TOP_K, -1).values
    threshold = _of_sorted(top, alpha)
    if (top[:, -1:] > threshold).any():
        return _newton(below, threshold, alpha)
    return threshold


def _of_sorted(top: Tensor, alpha: Alpha) -> Tensor:
    """The threshold of sorted scores (Martins 2016, algorithm 1; Peters 2019, algorithm 2).

    If the first k are the support, it is the root of an equation of first or second degree, a
    lower bound for any other k of sparsemax. For the other α the root may be too high; then the
    k-th score is a lower bound. So the maximum of these over k is the threshold.
    """
    top = top.clamp(min=-1)  # lower scores have no weight; clamped, their squares are finite
    ranks = torch.arange(1, top.shape[-1] + 1, dtype=top.dtype)
    sums = top.cumsum(-1)
    if _is(alpha, 2.0):
        return sums.sub_(1).div_(ranks).amax(-1, keepdim=True)
    squares = top.square().cumsum(-1)
    discriminant = torch.addcmul(ranks, ranks, squares, value=-1).addcmul_(sums, sums)
    # Below 0 there is no root, and torch's square root is slow for NaN.
    roots = sums.sub_(discriminant.clamp_(min=torch.finfo(top.dtype).tiny).sqrt_()).div_(ranks)
    return torch.minimum(roots, top).amax(-1, keepdim=True)


def _bisect(below: Tensor, alpha: float) -> Tensor:
    """The threshold for α > 2, where a Newton step could overshoot."""
    threshold, step = torch.full_like(below[:, :1], -1), 1.0
    buffer = torch.empty_like(below)
    while step > torch.finfo(below.dtype).eps / 4:
        step /= 2
        bases = torch.sub(below, threshold + step, out=buffer).relu_()
        threshold += step * (_sum(bases.pow_(1 / (alpha - 1))) >= 1)
    return threshold


def _sum(values: Tensor) -> Tensor:
    return values.sum(-1, keepdim=True)


def _is(alpha: Alpha, value: float) -> bool:
    return isinstance(alpha, float) and alpha == value
