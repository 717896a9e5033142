"""Entmax without data-dependent branches: for torch.compile, torch.func and GPUs."""

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.core.axes import Scalar, Scores, Weights


def entmax(scores: Scores, alpha: float | Scalar) -> Weights:
    """α-entmax over the keys, for α > 1; a key with a score of −∞ is masked, with the weight 0."""
    hidden = scores.detach() == -torch.inf
    scores = scores.masked_fill(hidden, torch.finfo(scores.dtype).min)
    # Entmax is invariant to a shift of all scores; this one keeps powers and sums small.
    scores = scores - scores.amax(-1, keepdim=True).detach()
    exact = isinstance(alpha, float) and alpha == 2.0
    weights = _sparsemax(scores) if exact else _entmax(scores, alpha)
    return weights.masked_fill(hidden, 0.0)


def _sparsemax(scores: Scores) -> Weights:
    with torch.no_grad():
        ordered = scores.sort(-1, descending=True).values
        ranks = torch.arange(1, scores.shape[-1] + 1, device=scores.device)
        sums = ordered.cumsum(-1)
        size = (1 + ranks * ordered > sums).sum(-1, keepdim=True).clamp(min=1)
        support = _above(scores, (sums.gather(-1, size - 1) - 1) / size)
    # On its support the threshold is a mean, which autograd differentiates to any order.
    supported = torch.where(support, scores, 0.0)
    threshold = (supported.sum(-1, keepdim=True) - 1) / support.sum(-1, keepdim=True)
    return torch.where(support, scores - threshold, 0.0)


def _entmax(scores: Scores, alpha: float | Scalar) -> Weights:
    """α_i = max(0, (α − 1) e_i − τ)^(1/(α−1)), τ such that they sum to 1.

    τ is computed by bisection, outside autograd; Newton steps inside it supply its derivatives and
    leave its value: at the root one step has the right first derivative, two the right second.
    """
    scores = (alpha - 1) * scores
    power = 1 / (alpha - 1)
    with torch.no_grad():
        threshold = _root(scores, power)
    for _ in range(2):
        step = _newton(scores, threshold, power)
        threshold = threshold.detach() + (step - step.detach())
    return _powers(scores, threshold, power)


def _root(scores: Scores, power: float | Scalar) -> Float[Tensor, "*#batch query 1"]:
    # The largest score is 0: at τ = −1 its weight alone is 1, at τ = 0 it is 0.
    threshold, step = torch.full_like(scores[..., :1], -1.0), 1.0
    while step > torch.finfo(scores.dtype).eps / 4:
        step /= 2
        total = _powers(scores, threshold + step, power).sum(-1, keepdim=True)
        threshold = torch.where(total >= 1, threshold + step, threshold)
    return threshold


def _powers(scores: Tensor, threshold: Tensor, power: float | Tensor) -> Tensor:
    above = _above(scores, threshold)
    return torch.where(above, torch.where(above, scores - threshold, 1.0) ** power, 0.0)


def _above(scores: Tensor, threshold: Tensor) -> Tensor:
    return ~(scores <= threshold)  # true for NaN, too, which must propagate


def _newton(scores: Tensor, threshold: Tensor, power: float | Tensor) -> Tensor:
    above = _above(scores, threshold)
    base = torch.where(above, scores - threshold, 1.0)
    total = torch.where(above, base**power, 0.0).sum(-1, keepdim=True)
    slope = torch.where(above, power * base ** (power - 1), 0.0).sum(-1, keepdim=True)
    return threshold + (total - 1) / slope
