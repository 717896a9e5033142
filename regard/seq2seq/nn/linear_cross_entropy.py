"""The loss of a large vocabulary, in chunks: scores of all tokens at all places are never held."""

import math
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.attention.kernels import native
from regard.attention.kernels.autocast import autocast_disabled

CHUNK = 1 << 23
"""About so many scores at a time, where they are multiplied with a weight."""

NEAR = 1 << 17
"""So many where they are gone over several times; they stay near the processor."""


def linear_cross_entropy(
    features: Float[Tensor, "row size"],
    weight: Float[Tensor, "token size"],
    bias: Float[Tensor, " token"],
    targets: Int[Tensor, " row"],
    smoothing: float = 0.0,
) -> tuple[Float[Tensor, ""], Float[Tensor, " row"]]:
    """The sum of the cross-entropy, and each target's log-probability, without a gradient.

    With smoothing ε, a target is 1 − ε itself and ε all tokens alike (Szegedy 2016, section 7).
    """
    with autocast_disabled(features.device.type):
        features = features.to(weight.dtype)
        found: tuple[Tensor, Tensor] = _LinearCrossEntropy.apply(
            features, weight, bias, targets, smoothing
        )  # type: ignore[no-untyped-call]
    return found


def log_softmax(
    scores: Float[Tensor, "*row token"], bias: Float[Tensor, " token"] | None = None
) -> Float[Tensor, "*row token"]:
    """Logarithm of softmax(scores + bias), over scores of which most are far below the best.

    Where torch exponentiates those it meets numbers too small to be normal, and slows down. Without
    a gradient the scores are overwritten, a few rows at a time, so that these stay near.
    """
    lowest = floor(scores.dtype)
    if scores.requires_grad:
        scores = scores if bias is None else scores + bias
        shifted = scores - scores.amax(-1, keepdim=True).detach()
        return shifted - shifted.clamp(min=lowest).exp().sum(-1, keepdim=True).log()
    flat = scores.reshape(-1, scores.shape[-1])
    if _use_native(flat):
        native.log_softmax(flat, bias)
        return flat.view(scores.shape)
    for part in _near(flat):
        rows = flat[part]
        if bias is not None:
            rows += bias
        rows -= rows.amax(-1, keepdim=True)
        rows -= rows.clamp(min=lowest).exp_().sum(-1, keepdim=True).log_()
    return flat.view(scores.shape)


def floor(dtype: torch.dtype) -> float:
    """The lowest logarithm that is worth telling apart from minus infinity."""
    return 0.9 * math.log(torch.finfo(dtype).tiny)


def chunks(rows: int, vocabulary: int, most: int) -> list[slice]:
    """The rows in parts as like as can be, with at most so many scores each, or of one row."""
    parts = -(-rows // max(1, most // vocabulary))
    step = -(-rows // max(1, parts))
    return [slice(first, min(first + step, rows)) for first in range(0, rows, max(1, step))]


def _use_native(scores: Tensor) -> bool:
    """Can the C kernels go over these?"""
    return (
        scores.is_cpu
        and scores.dtype == torch.float32
        and scores.is_contiguous()
        and native.library() is not None
        and not torch.compiler.is_compiling()
    )


def _near(scores: Tensor) -> list[slice]:
    """Rows to go over together; a GPU takes all at once."""
    rows, tokens = scores.shape
    return chunks(rows, tokens, NEAR) if scores.is_cpu else [slice(None)]


class _LinearCrossEntropy(torch.autograd.Function):
    """Gradients are found on the way forth, while a chunk's scores are at hand.

    What they will be multiplied with on the way back is mostly 1 / rows, for the objective is a
    mean. So C does that at once, where to do so later is one more walk through them.
    """

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        learns = any(ctx.needs_input_grad)
        total, chosen = features.new_zeros(()), features.new_empty(len(features))
        # The first chunk sets what the others add to; where there is none, it is zero.
        made = torch.empty_like if len(features) else torch.zeros_like
        gradients = [made(features), made(weight), torch.zeros_like(bias)] if learns else []
        ctx.foretold = 1.0
        for rows in chunks(len(features), len(weight), CHUNK):
            scores, wanted, own = features[rows] @ weight.mT, targets[rows], chosen[rows]
            if _use_native(scores):
                ctx.foretold = 1 / len(features)
                lost, own[:], added = native.cross_entropy_with_grad(
                    scores, bias, wanted, smoothing, ctx.foretold
                )
                total += lost.sum()
            else:
                for near in _near(scores):
                    total += _transposed(scores[near], bias, wanted[near], smoothing, own[near])
                added = scores.sum(0)
            if learns:
                gradients[2] += added
                torch.mm(scores, weight, out=gradients[0][rows])
                gradients[1].addmm_(scores.mT, features[rows], beta=int(rows.start > 0))
        ctx.save_for_backward(*gradients)
        ctx.mark_non_differentiable(chosen)
        return total, chosen

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, outer: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        gradients = ctx.saved_tensors
        if ctx.foretold == 1.0 or not torch.equal(outer, torch.full_like(outer, ctx.foretold)):
            gradients = [gradient * (outer / ctx.foretold) for gradient in gradients]
        return *gradients, None, None


def _transposed(
    scores: Tensor, bias: Tensor, targets: Tensor, smoothing: float, chosen: Tensor
) -> Tensor:
    """The loss of a few rows. Their scores are turned into its gradient, in place.

    What is written to `chosen` is the log-probability of each target.
    """
    scores += bias
    scores -= scores.amax(-1, keepdim=True)
    own, mean = scores.gather(-1, targets[:, None]), scores.mean(-1) if smoothing else 0.0
    total = scores.clamp_(min=floor(scores.dtype)).exp_().sum(-1, keepdim=True)
    log_total = total.log()[:, 0]
    torch.sub(own[:, 0], log_total, out=chosen)
    scores /= total
    if smoothing:
        scores -= smoothing / scores.shape[-1]
    scores.scatter_add_(-1, targets[:, None], torch.full_like(own, smoothing - 1))
    return -((1 - smoothing) * chosen + smoothing * (mean - log_total)).sum()
