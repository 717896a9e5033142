"""Top-k: softmax over the keys with the k highest scores."""

import torch
from jaxtyping import Int
from torch import Tensor

from regard.attention.core.axes import Allowed, Queries, Scores, StepState, Weights
from regard.attention.core.numerics import softmax
from regard.attention.core.options import check_int
from regard.attention.core.records import record, static
from regard.attention.kernels import Rule, View
from regard.attention.masks import PairIndex
from regard.attention.selection.base import Selection, check_dropout


class TopK(Selection):
    """Softmax over the k highest scores, exact zeros elsewhere (Gupta 2021, section 2).

    Args:
        k: How many keys; if fewer may be read, all of these.
        dropout: Probability with which a weight is dropped from the context in training.
    """

    def __init__(self, k: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.k = check_int("k", k, 1)
        self.dropout = check_dropout(dropout)

    def bind(self, queries: Queries, view: View, state: StepState) -> Rule:
        return TopKRule(self.k, self.dropout if self.training else 0.0)

    def extra_repr(self) -> str:
        return f"k={self.k}, dropout={self.dropout}"


@record
class TopKRule(Rule):
    """Softmax over the k highest scores."""

    k: int = static()
    dropout: float = static(default=0.0)

    def weights(self, scores: Scores, allowed: Allowed | None, pairs: PairIndex) -> Weights:
        visible = scores
        if allowed is not None:
            visible = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
        best = visible.topk(min(self.k, scores.shape[-1]), -1, sorted=False).indices
        chosen = torch.zeros_like(scores, dtype=torch.bool).scatter(-1, best, True)
        return softmax(scores, chosen if allowed is None else chosen & allowed)

    def rows(self, index: Int[Tensor, " row"], rows: int) -> Rule:
        return self
