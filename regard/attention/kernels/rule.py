"""A selection with everything fixed for one read, the random draw included."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.axes import Allowed, Scores, Weights
from regard.attention.kernels.numbers import softmax
from regard.attention.masks import Pairs
from regard.attention.records import record, static


class Rule(ABC):
    """How scores become weights in this read: parameters, step, mode and draw are in it."""

    __slots__ = ()
    dropout: float
    """What share of the weights the context goes without; 0 outside training."""

    @abstractmethod
    def weights(self, scores: Scores, allowed: Allowed | None, pairs: Pairs) -> Weights:
        """Weights before dropout; exact zeros where nothing may be read."""

    @abstractmethod
    def rows(self, index: Int[Tensor, " row"], rows: int) -> "Rule":
        """The rule for some of so many rows only."""

    def thin(self, weights: Weights) -> Weights:
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
class Soft(Rule):
    """Softmax at a temperature: the one rule that fused kernels know."""

    temperature: float = static(default=1.0)
    dropout: float = static(default=0.0)

    def weights(self, scores: Scores, allowed: Allowed | None, pairs: Pairs) -> Weights:
        return softmax(scores if self.temperature == 1.0 else scores / self.temperature, allowed)

    def rows(self, index: Int[Tensor, " row"], rows: int) -> "Soft":
        return self
