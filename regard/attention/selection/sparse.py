"""Sparse selections: softmax's relatives that give exact zeros."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.axes import Allowed, Queries, Scalar, Scores, Trace, Weights
from regard.attention.errors import OptionError
from regard.attention.kernels import Rule, View
from regard.attention.kernels.numbers import softmax, wide
from regard.attention.masks import Pairs
from regard.attention.parameters import scalar, snapshot
from regard.attention.records import record, static
from regard.attention.selection.base import Selection, dropout_rate

HALVINGS = 24
"""How often the bracket around the threshold is halved before Newton's steps take over."""


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
        learned: Learn α between 1 and 2 (Correia 2019, section 3.3), from this value on.
        dropout: What share of the weights the context goes without in training.
    """

    def __init__(self, alpha: float = 1.5, *, learned: bool = False, dropout: float = 0.0) -> None:
        super().__init__()
        if not alpha >= 1 or (learned and not 1 < alpha < 2):
            needed = "between 1 and 2, to be learned" if learned else "of at least 1"
            raise OptionError(f"alpha is {alpha}. Give a number {needed}.")
        self.alpha = alpha
        self.raw_alpha = scalar(torch.logit(torch.tensor(alpha - 1)).item()) if learned else None
        self.dropout = dropout_rate(dropout)

    def bind(self, queries: Queries, view: View, trace: Trace) -> Rule:
        alpha = None
        if self.raw_alpha is not None:
            # Never quite 1: the exponent 1 / (α − 1) would leave float32.
            alpha = 1.01 + 0.99 * wide(snapshot(self.raw_alpha, queries.ndim)).sigmoid()
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

    τ is bracketed by halving, outside autograd, and finished by Newton's steps inside it: at the
    root a first step has the right first derivative, a second one the right second.
    """
    scores = (alpha - 1) * scores
    power = 1 / (alpha - 1)
    with torch.no_grad():
        threshold = _bracket(scores, power)
        for _ in range(2):
            threshold = _newton(scores, threshold, power)
    for _ in range(2):
        threshold = _newton(scores, threshold, power)
    return _powers(scores, threshold, power)


def _bracket(scores: Scores, power: float | Scalar) -> Float[Tensor, "*#batch query 1"]:
    # The largest score is 0: at τ = −1 its weight alone is 1, at τ = 0 it is 0.
    threshold, step = torch.full_like(scores[..., :1], -1.0), 1.0
    for _ in range(HALVINGS):
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
