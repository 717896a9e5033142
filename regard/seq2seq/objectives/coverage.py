"""The coverage loss: penalises attending to the same position again."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.seq2seq.batch import SourceTarget
from regard.seq2seq.objectives.base import Output
from regard.seq2seq.protocols import Loss, LossTerm


def coverage_loss(
    weights: Float[Tensor, "batch target source"], real: Bool[Tensor, "batch target"]
) -> Float[Tensor, ""]:
    """Σ min(weights, sum of the weights of earlier steps) (See 2017, section 2.3)."""
    before = weights.cumsum(1) - weights
    return torch.minimum(weights, before)[real].sum()


@dataclass(frozen=True)
class CoverageObjective:
    """The coverage loss of the decoder's attention weights.

    Args:
        weight: Its weight relative to the cross-entropy.
    """

    weight: float = 1.0
    name = "coverage"
    needs_attention = True

    def __call__(self, output: Output, batch: SourceTarget) -> Loss:
        total, count = coverage_loss(output.weights, output.real), batch.counts()["tokens"]
        return {self.name: LossTerm(total, count, self.weight, unit="tokens")}
