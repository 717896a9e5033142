"""Entmax by Newton's steps, in plain numbers: fast, and only where Python may look at them.

The weights are max(0, (α − 1) e − τ)^p with p = 1/(α − 1), and τ is such that they sum to 1. For
α ≤ 2 the p-norm of max(0, (α − 1) e − τ) is convex in τ and falls, so Newton's steps from below
never pass the τ at which it is 1, and soon arrive: each at least quarters the product of what is
left and the slope. Nothing is sorted, but for the best of few scores.

The sizes below are as measured on a CPU.
"""

import torch
from torch import Tensor

SMALL, BEST = 1 << 13, 32
"""Of so few scores, so many of a row are sorted: calls cost more there than what they compute."""
LONG, BLOCK = 256, 8
"""Rows of so many keys begin at the threshold of the best of every so many keys."""

Alpha = float | Tensor


def entmax(scores: Tensor, alpha: Alpha) -> Tensor:
    """α-entmax along the last axis, for α > 1; a row of nothing but −∞ has weights 0."""
    rows = scores.flatten(0, -2)
    if isinstance(alpha, Tensor):
        shared = alpha.numel() == 1
        alpha = float(alpha) if shared else alpha.expand(*scores.shape[:-1], 1).reshape(-1, 1)
    lowest = torch.finfo(rows.dtype).min  # −∞ less −∞ would be NaN
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
        return weights  # one near 0 may be far off, and is not to move the others
    # A power is p times as wrong as its base.
    return weights.div_(_sum(weights).clamp_(min=0.5))


def _threshold(below: Tensor, alpha: Alpha) -> Tensor:
    """τ for scores times α − 1, of which the best is 0: it lies between −1 and 0."""
    if isinstance(alpha, float) and alpha > 2:
        return _halve(below, alpha)
    if below.numel() <= SMALL and (_is(alpha, 2.0) or _is(alpha, 1.5)):
        return _sort(below, alpha)
    keys = below.shape[-1]
    if keys < LONG:
        return _climb(below, torch.full_like(below[:, :1], -1), alpha)
    best = below[:, : keys // BLOCK * BLOCK].unflatten(-1, (BLOCK, -1)).amax(-2)
    # That of some of the keys is never higher than that of all; of the best it is near.
    return _climb(below, _threshold(best, alpha), alpha)


def _climb(below: Tensor, threshold: Tensor, alpha: Alpha) -> Tensor:
    """Newton's steps until no row moves; once most have arrived, the others go on alone."""
    least, room = torch.finfo(below.dtype).eps / 2, torch.empty_like(below)
    while True:
        step = _step(torch.sub(below, threshold, out=room).relu_(), alpha)
        threshold = threshold + step
        moving = (step > least).squeeze(-1)
        count = int(moving.sum())
        if count == 0:
            return threshold
        if 4 * count < len(below):
            alpha = alpha[moving] if isinstance(alpha, Tensor) else alpha
            threshold[moving] = _climb(below[moving], threshold[moving], alpha)
            return threshold


def _step(bases: Tensor, alpha: Alpha) -> Tensor:
    """How far to go on from the threshold that gives these bases, which are overwritten."""
    if _is(alpha, 2.0):
        total, slope = _sum(bases), _sum(bases.sign_())
    elif _is(alpha, 1.5):
        slope, total = _sum(bases), _sum(bases.square_())
    else:
        weights = bases.pow(1 / (alpha - 1))
        total = _sum(weights)
        slope = _sum(weights.div_(bases.clamp_(min=torch.finfo(bases.dtype).tiny)))
    # The slope is 1 at least, but in a row of nothing but −∞.
    step = (total - total.pow(2 - alpha)).div_(slope.clamp_(min=1))
    return step.relu_()  # never back: rounding would have some rows go to and fro


def _sort(below: Tensor, alpha: Alpha) -> Tensor:
    """The threshold of a row's best; in a row where they are not enough, it climbs from there."""
    if below.shape[-1] <= BEST:
        return _of_sorted(below.sort(-1, descending=True).values, alpha)
    best = below.topk(BEST, -1).values
    threshold = _of_sorted(best, alpha)
    if (best[:, -1:] > threshold).any():
        return _climb(below, threshold, alpha)
    return threshold


def _of_sorted(best: Tensor, alpha: Alpha) -> Tensor:
    """The threshold of sorted scores (Martins 2016, algorithm 1; Peters 2019, algorithm 2).

    Of the first k alone it is the root of an equation of first or second degree if all k are
    read, and then not too high. If not, sparsemax's root is too low; where the other is too high
    the k-th score is not. So the largest of these is the one.
    """
    best = best.clamp(min=-1)  # what is lower is not read; cut, its square is a number
    ranks = torch.arange(1, best.shape[-1] + 1, dtype=best.dtype)
    sums = best.cumsum(-1)
    if _is(alpha, 2.0):
        return sums.sub_(1).div_(ranks).amax(-1, keepdim=True)
    squares = best.square().cumsum(-1)
    under = torch.addcmul(ranks, ranks, squares, value=-1).addcmul_(sums, sums)
    # Below 0 there is no root, and torch takes long to say so.
    roots = sums.sub_(under.clamp_(min=torch.finfo(best.dtype).tiny).sqrt_()).div_(ranks)
    return torch.minimum(roots, best).amax(-1, keepdim=True)


def _halve(below: Tensor, alpha: float) -> Tensor:
    """The threshold for α > 2, where a step of Newton's could go too far."""
    threshold, step = torch.full_like(below[:, :1], -1), 1.0
    room = torch.empty_like(below)
    while step > torch.finfo(below.dtype).eps / 4:
        step /= 2
        bases = torch.sub(below, threshold + step, out=room).relu_()
        threshold += step * (_sum(bases.pow_(1 / (alpha - 1))) >= 1)
    return threshold


def _sum(values: Tensor) -> Tensor:
    return values.sum(-1, keepdim=True)


def _is(alpha: Alpha, value: float) -> bool:
    return isinstance(alpha, float) and alpha == value
