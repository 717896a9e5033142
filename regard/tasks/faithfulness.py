"""Attention weights beside what mattered: a record, whatever model they come from."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Faithfulness:
    """What was read, beside what was needed."""

    source: list[str]
    target: list[str]
    entropy: list[float]
    """Of each target word's weights, in bits; the end of the source counts as a word."""

    erased: list[int]
    """Which source words were left out."""

    weights: Float[Tensor, "target erased"]
    """How much was read of these."""

    drops: Float[Tensor, "target erased"]
    """By how much the log-probability of each target word falls without them."""

    on_punctuation: float
    """What share of the reading lies on tokens that are nothing else."""

    on_end: float
    """What share lies on the end of the source."""

    @property
    def most_read(self) -> list[int]:
        """For each target word, of the erased source words the one that is read most."""
        return [self.erased[place] for place in self.weights.argmax(-1).tolist()]

    @property
    def most_needed(self) -> list[int]:
        """For each target word the source word without which it falls most."""
        return [self.erased[place] for place in self.drops.argmax(-1).tolist()]

    @property
    def agreement(self) -> float:
        """What share of the target words read most what they need most."""
        pairs = list(zip(self.most_read, self.most_needed, strict=True))
        return sum(read == needed for read, needed in pairs) / len(pairs)

    @property
    def correlation(self) -> float | None:
        """Spearman's, the mean over target words; None if no word has an order to compare."""
        found = [
            value
            for own, drop in zip(self.weights, self.drops, strict=True)
            if (value := rank_correlation(own, drop)) is not None
        ]
        return sum(found) / len(found) if found else None


def rank_correlation(one: Float[Tensor, " item"], other: Float[Tensor, " item"]) -> float | None:
    """Spearman's: of ranks, equal values sharing theirs; None if either has no order.

    >>> rank_correlation(torch.tensor([0.1, 0.2, 0.7]), torch.tensor([0.0, 5.0, 9.0]))
    1.0
    """
    centred = [_ranks(values) - (len(values) - 1) / 2 for values in (one, other)]
    scale = torch.sqrt(centred[0].square().sum() * centred[1].square().sum())
    return None if scale == 0 else float(centred[0] @ centred[1] / scale)


def _ranks(values: Float[Tensor, " item"]) -> Float[Tensor, " item"]:
    smaller = (values[None] < values[:, None]).sum(-1)
    alike = (values[None] == values[:, None]).sum(-1)
    return smaller + (alike - 1) / 2
