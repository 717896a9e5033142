"""α-entmax (Peters 2019) and its derivatives; sparsemax is α = 2."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from regard.attention.core.axes import Scalar, Scores, Weights
from regard.attention.core.tracing import is_concrete
from regard.attention.selection import entmax_newton, entmax_traceable


def entmax(scores: Scores, alpha: float | Scalar) -> Weights:
    """α-entmax over the keys, for α > 1; a key with a score of −∞ is masked, with the weight 0."""
    if not is_concrete(scores):
        return entmax_traceable.entmax(scores, alpha)
    if isinstance(alpha, Tensor):
        scores = torch.broadcast_tensors(scores, alpha)[0]
    if _needs_derivative(scores, alpha):
        return _Entmax.apply(scores, alpha)  # type: ignore[no-untyped-call]
    return entmax_newton.entmax(scores, alpha)


def _needs_derivative(*values: float | Tensor) -> bool:
    """Is autograd recording, in backward or forward mode?"""
    if forward_ad._current_level >= 0:  # torch has no public way to ask
        return True
    tensors = (value for value in values if isinstance(value, Tensor))
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


class _Entmax(torch.autograd.Function):
    """α-entmax; its derivatives are functions of its output, and so differentiable, too."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, alpha: float | Tensor) -> Tensor:
        weights = entmax_newton.entmax(scores, alpha)
        learned = alpha if isinstance(alpha, Tensor) else None
        ctx.alpha = alpha if learned is None else None
        ctx.save_for_backward(weights, learned)
        ctx.save_for_forward(weights, learned)
        return weights

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor | None]:
        weights, learned = ctx.saved_tensors
        alpha = ctx.alpha if learned is None else learned
        grad_scores = _jacobian_product(gradients[0], weights, alpha)
        if not ctx.needs_input_grad[1]:
            return grad_scores, None
        grad_alpha = grad_scores * _alpha_tangents(weights, alpha)
        return grad_scores, grad_alpha.sum_to_size(alpha.shape)

    @staticmethod
    def jvp(ctx: Any, scores: Tensor | None, alpha: Tensor | None) -> Tensor:
        weights, learned = ctx.saved_tensors
        tangents = torch.zeros_like(weights) if scores is None else scores
        if alpha is not None:
            tangents = tangents + alpha * _alpha_tangents(weights, learned)
        return _jacobian_product(tangents, weights, ctx.alpha if learned is None else learned)


def _jacobian_product(tangents: Tensor, weights: Tensor, alpha: float | Tensor) -> Tensor:
    """Tangents times ∂weights/∂scores, which is symmetric (Peters 2019, proposition 2)."""
    slopes = _slopes(weights, alpha)
    scaled = slopes * tangents
    # But for empty rows, the slopes sum to 1 at least.
    mean = scaled.sum(-1, keepdim=True) / slopes.sum(-1, keepdim=True).clamp(min=0.5)
    if torch.is_grad_enabled():
        return scaled - mean * slopes
    return scaled.addcmul_(mean, slopes, value=-1)


def _slopes(weights: Tensor, alpha: float | Tensor) -> Tensor:
    """weights^(2 − α), and 0 where they are 0."""
    if isinstance(alpha, float) and alpha == 2.0:
        return weights.sign()
    return weights / _away_from_zero(weights, alpha).pow(alpha - 1)


def _alpha_tangents(weights: Tensor, alpha: Tensor) -> Tensor:
    """The tangents of scores whose Jacobian product is ∂weights/∂α.

    They are (e^u (1 − u) − 1)/(α − 1)² with u = (α − 1) log weights. The gradient that Correia 2019
    gives, in proposition 1, is a difference of large numbers where α is near 1.
    """
    powers = (alpha - 1) * _away_from_zero(weights, alpha).log()
    return (powers.expm1() - powers * powers.exp()) / (alpha - 1) ** 2


def _away_from_zero(weights: Tensor, alpha: float | Tensor) -> Tensor:
    """The weights, clamped so that their powers and the derivatives of these are finite."""
    power = min(1.0, 1 / (alpha - 1)) if isinstance(alpha, float) else 1.0
    return weights.clamp(min=torch.finfo(weights.dtype).tiny ** (power / 2))
