"""A search in inference mode: autograd records nothing."""

from dataclasses import dataclass, replace

import torch

from regard.seq2seq.batch import Batch
from regard.seq2seq.protocols import Hypothesis, Search, Stepper


@dataclass(frozen=True)
class WithoutGradients:
    """Another search, in inference mode while it runs and no longer.

    A mode that a generator switches on would be on for its consumer, too.
    """

    search: Search

    def __call__(self, model: Stepper, batch: Batch) -> list[list[Hypothesis]]:
        with torch.inference_mode():
            hypotheses = self.search(model, batch)
        return [[_normal(hypothesis) for hypothesis in each] for each in hypotheses]


def _normal(hypothesis: Hypothesis) -> Hypothesis:
    """With normal weights: autograd refuses inference tensors."""
    if hypothesis.weights is None:
        return hypothesis
    return replace(hypothesis, weights=hypothesis.weights.clone())
