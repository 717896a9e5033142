"""Sparse selections: softmax's relatives that give exact zeros."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.axes import Allowed, Queries, Scalar, Scores, Trace, Weights
from regard.attention.kernels import Rule, View
from regard.attention.kernels.numbers import softmax, wide
from regard.attention.masks import Pairs
from regard.attention.options import number
from regard.attention.parameters import scalar, snapshot
from regard.attention.records import record, static
from regard.attention.selection.base import Selection, dropout_rate

FLATTEST = 1.01
"""The least that a learned α can be: at 1 the exponent 1 / (α − 1) would leave float32."""


class Sparsemax(Selection):
    """α = the point of the simplex nearest to e (Martins 2016, eq. 2 and algorithm 1).

    Args:
        dropout: What share of the weights the context goes without in training.
    """

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = dropout_rate(dropout)

    def bind(self, queries: Queries, view: View, trace: Trace) -> Rule:
        return Sparse(None, 2.0, self.dropout if self.training else 0.0)

    def extra_repr(self) -> str:
        return f"dropout={self.dropout}"


class Entmax(Selection):
    """α-entmax (Peters 2019, eq. 10): α = 1 is softmax, α = 2 is sparsemax, 1.5 lies between.

    Args:
        alpha: At least 1.
        learned: Learn α between 1 and 2 (Correia 2019), from this value on.
        dropout: What share of the weights the context goes without in training.
    """

    def __init__(self, alpha: float = 1.5, *, learned: bool = False, dropout: float = 0.0) -> None:
        super().__init__()
        if learned:
            number("alpha", alpha, "a number between 1 and 2, to be learned", lambda a: 1 < a < 2)
        self.alpha = number("alpha", alpha, "a finite number of at least 1", lambda a: a >= 1)
        self.raw_alpha = scalar(math.log((alpha - FLATTEST) / (2 - alpha))) if learned else None
        self.dropout = dropout_rate(dropout)

    def bind(self, queries: Queries, view: View, trace: Trace) -> Rule:
        alpha = None
        if self.raw_alpha is not None:
            alpha = FLATTEST + (2 - FLATTEST) * wide(snapshot(self.raw_alpha, queries)).sigmoid()
        return Sparse(alpha, self.alpha, self.dropout if self.training else 0.0)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}, learned={self.raw_alpha is not None}, dropout={self.dropout}"


@record
class Sparse(Rule):
    """α-entmax of the scores, with α a number or learned."""

    learned: Scalar | None
    alpha: float = static()
    dropout: float = static(default=0.0)

    def weights(self, scores: Scores, allowed: Allowed | None, pairs: Pairs) -> Weights:
        if self.learned is None and self.alpha == 1.0:
            return softmax(scores, allowed)
        if allowed is not None:
            scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
        # Shifting all scores changes nothing; it keeps powers and sums small.
        scores = scores - scores.amax(-1, keepdim=True).detach()
        if self.learned is None and self.alpha == 2.0:
            weights = _sparsemax(scores)
        else:
            weights = _entmax(scores, self.alpha if self.learned is None else self.learned)
        return weights if allowed is None else weights.masked_fill(~allowed, 0.0)

    def rows(self, index: Int[Tensor, " row"], rows: int) -> Rule:
        return self


def _sparsemax(scores: Scores) -> Weights:
    with torch.no_grad():
        ordered = scores.sort(-1, descending=True).values
        places = torch.arange(1, scores.shape[-1] + 1, device=scores.device)
        sums = ordered.cumsum(-1)
        size = (1 + places * ordered > sums).sum(-1, keepdim=True)
        support = scores > (sums.gather(-1, size - 1) - 1) / size
    # On its support the threshold is a mean: autograd finds its gradients, of any order.
    kept = torch.where(support, scores, 0.0)
    threshold = (kept.sum(-1, keepdim=True) - 1) / support.sum(-1, keepdim=True)
    return torch.where(support, scores - threshold, 0.0)


def _entmax(scores: Scores, alpha: float | Scalar) -> Weights:
    """α_i = max(0, (α − 1) e_i − τ)^(1/(α−1)), τ such that they sum to 1.

    τ is found by halving, outside autograd; Newton's steps inside it give it its derivatives and
    not its value: at the root one step has the right first derivative, two the right second.
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
    above = scores > threshold
    return torch.where(above, torch.where(above, scores - threshold, 1.0) ** power, 0.0)


def _newton(scores: Tensor, threshold: Tensor, power: float | Tensor) -> Tensor:
    above = scores > threshold
    base = torch.where(above, scores - threshold, 1.0)
    total = torch.where(above, base**power, 0.0).sum(-1, keepdim=True)
    slope = torch.where(above, power * base ** (power - 1), 0.0).sum(-1, keepdim=True)
    return threshold + (total - 1) / slope
