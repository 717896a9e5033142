"""Linear layer and cross-entropy in one, in chunks: all logits at once are never held.

The gradients are computed in forward, while a chunk's logits are in cache.
"""

import math
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.attention.core.autocast import autocast_disabled
from regard.native import log_softmax as vocabulary
from regard.native.eligibility import usable

CHUNK = 1 << 23
"""About so many logits at a time, where they are multiplied with a weight."""

CACHE_CHUNK = 1 << 17
"""So many where several passes go over them; they stay in cache."""


def linear_cross_entropy(
    features: Float[Tensor, "row size"],
    weight: Float[Tensor, "token size"],
    bias: Float[Tensor, " token"],
    targets: Int[Tensor, " row"],
    smoothing: float = 0.0,
) -> tuple[Float[Tensor, ""], Float[Tensor, " row"]]:
    """The sum of the cross-entropy, and each target's log-probability, without a gradient.

    Label smoothing ε: a target is 1 − ε itself and ε uniform (Szegedy 2016, section 7).
    """
    with autocast_disabled(features.device.type):
        features = features.to(weight.dtype)
        outputs: tuple[Tensor, Tensor] = _LinearCrossEntropy.apply(
            features, weight, bias, targets, smoothing
        )  # type: ignore[no-untyped-call]
    return outputs


def log_softmax(
    logits: Float[Tensor, "*row token"], bias: Float[Tensor, " token"] | None = None
) -> Float[Tensor, "*row token"]:
    """Logarithm of softmax(logits + bias), where most logits are far below the greatest.

    torch exponentiates those to denormal numbers, which are slow. Without a gradient the logits
    are overwritten, a few rows at a time, so that these stay in cache.
    """
    lowest = min_logit(logits.dtype)
    if logits.requires_grad:
        logits = logits if bias is None else logits + bias
        shifted = logits - logits.amax(-1, keepdim=True).detach()
        return shifted - shifted.clamp(min=lowest).exp().sum(-1, keepdim=True).log()
    flat = logits.reshape(-1, logits.shape[-1])
    if usable(flat, contiguous=True):
        vocabulary.log_softmax(flat, bias)
        return flat.view(logits.shape)
    for part in _cache_chunks(flat):
        rows = flat[part]
        if bias is not None:
            rows += bias
        rows -= rows.amax(-1, keepdim=True)
        rows -= rows.clamp(min=lowest).exp_().sum(-1, keepdim=True).log_()
    return flat.view(logits.shape)


def min_logit(dtype: torch.dtype) -> float:
    """Below this, a logit less the greatest is as good as −∞: its exponential is near denormal."""
    return 0.9 * math.log(torch.finfo(dtype).tiny)


def chunks(rows: int, vocab_size: int, most: int) -> list[slice]:
    """The rows in chunks of about equal size, of at most so many logits, or of one row."""
    parts = -(-rows // max(1, most // vocab_size))
    step = -(-rows // max(1, parts))
    return [slice(first, min(first + step, rows)) for first in range(0, rows, max(1, step))]


def _cache_chunks(logits: Tensor) -> list[slice]:
    """Rows to go over together; on a GPU all."""
    rows, tokens = logits.shape
    return chunks(rows, tokens, CACHE_CHUNK) if logits.is_cpu else [slice(None)]


class _LinearCrossEntropy(torch.autograd.Function):
    """Gradients are computed in forward, while a chunk's logits are in cache.

    The incoming gradient is mostly 1 / rows, for a loss is a mean. So C scales by that at once,
    where to do so in backward is one more pass over the gradients.
    """

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        needs_grad = any(ctx.needs_input_grad)
        total, log_probs = features.new_zeros(()), features.new_empty(len(features))
        # The first chunk sets what the others add to; without any, gradients are zero.
        new = torch.empty_like if len(features) else torch.zeros_like
        gradients = [new(features), new(weight), torch.zeros_like(bias)] if needs_grad else []
        ctx.scaled_by = 1.0
        for rows in chunks(len(features), len(weight), CHUNK):
            logits, labels, chosen = features[rows] @ weight.mT, targets[rows], log_probs[rows]
            if usable(logits, contiguous=True):
                ctx.scaled_by = 1 / len(features)
                losses, chosen[:], grad_bias = vocabulary.cross_entropy_with_grad(
                    logits, bias, labels, smoothing, ctx.scaled_by
                )
                total += losses.sum()
            else:
                for part in _cache_chunks(logits):
                    total += _loss_with_grad(
                        logits[part], bias, labels[part], smoothing, chosen[part]
                    )
                grad_bias = logits.sum(0)
            if needs_grad:  # the logits are now their own gradients
                gradients[2] += grad_bias
                torch.mm(logits, weight, out=gradients[0][rows])
                gradients[1].addmm_(logits.mT, features[rows], beta=int(rows.start > 0))
        ctx.save_for_backward(*gradients)
        ctx.mark_non_differentiable(log_probs)
        return total, log_probs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_total: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        gradients, scale = ctx.saved_tensors, ctx.scaled_by
        if scale == 1.0 or not torch.equal(grad_total, torch.full_like(grad_total, scale)):
            gradients = [gradient * (grad_total / scale) for gradient in gradients]
        return *gradients, None, None


def _loss_with_grad(
    logits: Tensor, bias: Tensor, targets: Tensor, smoothing: float, log_probs: Tensor
) -> Tensor:
    """The loss of a few rows; the logits become its gradient, in place.

    The log-probability of each target is written to `log_probs`.
    """
    logits += bias
    logits -= logits.amax(-1, keepdim=True)
    chosen, mean = logits.gather(-1, targets[:, None]), logits.mean(-1) if smoothing else 0.0
    total = logits.clamp_(min=min_logit(logits.dtype)).exp_().sum(-1, keepdim=True)
    log_total = total.log()[:, 0]
    torch.sub(chosen[:, 0], log_total, out=log_probs)
    logits /= total
    if smoothing:
        logits -= smoothing / logits.shape[-1]
    logits.scatter_add_(-1, targets[:, None], torch.full_like(chosen, smoothing - 1))
    return -((1 - smoothing) * log_probs + smoothing * (mean - log_total)).sum()
