"""A search in inference mode: nothing is recorded for gradients while it computes."""

from dataclasses import dataclass, replace

import torch

from regard.seq2seq.batch import Batch
from regard.seq2seq.protocols import Hypothesis, Search, Stepper


@dataclass(frozen=True)
class WithoutGradients:
    """Another search, in inference mode for as long as it computes and no longer.

    A mode that a generator switched on would be on for whoever waits for its next item, too.
    """

    search: Search

    def __call__(self, model: Stepper, batch: Batch) -> list[list[Hypothesis]]:
        with torch.inference_mode():
            found = self.search(model, batch)
        return [[_ordinary(way) for way in ways] for ways in found]


def _ordinary(way: Hypothesis) -> Hypothesis:
    """With weights that gradients can flow beside: an inference tensor is refused by autograd."""
    return way if way.weights is None else replace(way, weights=way.weights.clone())
