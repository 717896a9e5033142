"""A selection with everything fixed for one read, random samples included."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.core.axes import Allowed, PerQuery, Scores, Weights
from regard.attention.core.numerics import softmax
from regard.attention.core.records import record, replace, static
from regard.attention.kernels.comparison import take
from regard.attention.masks import PairIndex


class Rule(ABC):
    """How scores become weights in this read; parameters, step, mode and samples are fixed."""

    __slots__ = ()
    dropout: float
    """The dropout rate of the weights; 0 outside training."""

    @abstractmethod
    def weights(self, scores: Scores, allowed: Allowed | None, pairs: PairIndex) -> Weights:
        """Weights before dropout; exactly 0 where masked."""

    @abstractmethod
    def rows(self, index: Int[Tensor, " row"], rows: int) -> "Rule":
        """The rule for some of the rows, of which there are so many."""

    def apply_dropout(self, weights: Weights) -> Weights:
        """The weights that the values are summed with."""
        return torch.dropout(weights, self.dropout, True) if self.dropout else weights

    def log_probs(
        self, scores: Scores, allowed: Allowed | None, weights: Weights
    ) -> Float[Tensor, "*#batch query"]:
        """Log-probability of the sampled key; 0 where nothing is sampled."""
        return scores.new_zeros(scores.shape[:-1])

    def entropy(self, scores: Scores, allowed: Allowed | None) -> Float[Tensor, "*#batch query"]:
        """Entropy of the sampled distribution, in nats; 0 where nothing is sampled."""
        return scores.new_zeros(scores.shape[:-1])


@record
class SoftmaxRule(Rule):
    """Softmax at a temperature: the one rule that fused kernels take."""

    temperature: float = static(default=1.0)
    dropout: float = static(default=0.0)

    def weights(self, scores: Scores, allowed: Allowed | None, pairs: PairIndex) -> Weights:
        return softmax(scores if self.temperature == 1.0 else scores / self.temperature, allowed)

    def rows(self, index: Int[Tensor, " row"], rows: int) -> "SoftmaxRule":
        return self


@record
class FixedWindowRule(Rule):
    """Softmax in a window around the key of the query's own index, plus `first`."""

    window: int = static()
    first: int = static(default=0)
    dropout: float = static(default=0.0)

    def weights(self, scores: Scores, allowed: Allowed | None, pairs: PairIndex) -> Weights:
        distance = pairs.column_index() - (pairs.row_index() + self.first)
        near = distance.abs() <= self.window
        return softmax(scores, near if allowed is None else near & allowed)

    def rows(self, index: Int[Tensor, " row"], rows: int) -> "FixedWindowRule":
        return self  # pairs.row_index() has the rows' indices


@record
class GaussianWindowRule(Rule):
    """Softmax in a window around each query's centre, times a Gaussian."""

    centres: PerQuery
    window: int = static()
    sigma: float = static()
    dropout: float = static(default=0.0)

    def weights(self, scores: Scores, allowed: Allowed | None, pairs: PairIndex) -> Weights:
        distance = pairs.column_index() - self.centres
        near = distance.abs() <= self.window
        weights = softmax(scores, near if allowed is None else near & allowed)
        return weights * torch.exp(distance.square() / (-2 * self.sigma**2))

    def rows(self, index: Int[Tensor, " row"], rows: int) -> "GaussianWindowRule":
        return replace(self, centres=take(self.centres, index, rows))
