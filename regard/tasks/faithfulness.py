"""Faithfulness of attention weights: how far they agree with the effect of erasing words."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Faithfulness:
    """Attention weights, and the drop in log-probability when each word is erased."""

    source: list[str]
    target: list[str]
    entropy: list[float]
    """Of each target word's weights, in bits; EOS of the source counts as a word."""

    erased: list[int]
    """The source words that were left out, one at a time."""

    weights: Float[Tensor, "target erased"]
    """The attention weights on these."""

    drops: Float[Tensor, "target erased"]
    """The drop in each target word's log-probability without each of them."""

    on_punctuation: float
    """Share of the attention on tokens that are punctuation."""

    on_end: float
    """Share of the attention on EOS of the source."""

    @property
    def most_read(self) -> list[int]:
        """For each target word, the erased source word with the largest weight."""
        return [self.erased[place] for place in self.weights.argmax(-1).tolist()]

    @property
    def most_needed(self) -> list[int]:
        """For each target word, the erased source word with the largest drop."""
        return [self.erased[place] for place in self.drops.argmax(-1).tolist()]

    @property
    def agreement(self) -> float:
        """Share of target words whose largest weight and largest drop coincide."""
        pairs = list(zip(self.most_read, self.most_needed, strict=True))
        return sum(read == needed for read, needed in pairs) / len(pairs)

    @property
    def correlation(self) -> float | None:
        """Spearman's rank correlation, averaged over target words; None if all are constant."""
        found = [
            value
            for weights, drops in zip(self.weights, self.drops, strict=True)
            if (value := rank_correlation(weights, drops)) is not None
        ]
        return sum(found) / len(found) if found else None


def rank_correlation(one: Float[Tensor, " item"], other: Float[Tensor, " item"]) -> float | None:
    """Spearman's rank correlation, ties averaged; None if either is constant.

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
