"""A selection with everything fixed for one read, the random draw included."""

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
    """How scores become weights in this read: parameters, step, mode and draw are in it."""

    __slots__ = ()
    dropout: float
    """What share of the weights the context goes without; 0 outside training."""

    @abstractmethod
    def weights(self, scores: Scores, allowed: Allowed | None, pairs: PairIndex) -> Weights:
        """Weights before dropout; exact zeros where nothing may be read."""

    @abstractmethod
    def rows(self, index: Int[Tensor, " row"], rows: int) -> "Rule":
        """The rule for some of so many rows only."""

    def apply_dropout(self, weights: Weights) -> Weights:
        """What the context is summed with: dropout lives here."""
        return torch.dropout(weights, self.dropout, True) if self.dropout else weights

    def log_probs(
        self, scores: Scores, allowed: Allowed | None, weights: Weights
    ) -> Float[Tensor, "*#batch query"]:
        """Logarithm of the chance of what was drawn; 0 where nothing was."""
        return scores.new_zeros(scores.shape[:-1])

    def entropy(self, scores: Scores, allowed: Allowed | None) -> Float[Tensor, "*#batch query"]:
        """Entropy of what was drawn from, in nats; 0 where nothing was drawn."""
        return scores.new_zeros(scores.shape[:-1])


@record
class SoftmaxRule(Rule):
    """Softmax at a temperature: the one rule that fused kernels know."""

    temperature: float = static(default=1.0)
    dropout: float = static(default=0.0)

    def weights(self, scores: Scores, allowed: Allowed | None, pairs: PairIndex) -> Weights:
        return softmax(scores if self.temperature == 1.0 else scores / self.temperature, allowed)

    def rows(self, index: Int[Tensor, " row"], rows: int) -> "SoftmaxRule":
        return self


@record
class FixedWindowRule(Rule):
    """Softmax in a window around the key of the query's own number, counted from `first`."""

    window: int = static()
    first: int = static(default=0)
    dropout: float = static(default=0.0)

    def weights(self, scores: Scores, allowed: Allowed | None, pairs: PairIndex) -> Weights:
        distance = pairs.column_index() - (pairs.row_index() + self.first)
        near = distance.abs() <= self.window
        return softmax(scores, near if allowed is None else near & allowed)

    def rows(self, index: Int[Tensor, " row"], rows: int) -> "FixedWindowRule":
        return self  # the pairs know their numbers


@record
class GaussianWindowRule(Rule):
    """Softmax in a window around each query's centre, bent by a Gaussian."""

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
