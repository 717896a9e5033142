"""Hard links from soft alignments.

A target word whose weight lies mostly on a null position (the end of the source) has no link.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.core.options import check_number
from regard.seq2seq.alignment.links import Links

Weights = Float[Tensor, "target source"]
NullWeights = Float[Tensor, " target"]
"""How much of each row lies on no word."""


@runtime_checkable
class Extraction(Protocol):
    """A rule that turns weights into links."""

    def __call__(self, weights: Weights, nothing: NullWeights | None = None) -> Links: ...


def _check_share(name: str, value: float) -> None:
    check_number(name, value, "a number from 0 to 1", lambda given: 0 <= given <= 1)


@dataclass(frozen=True)
class Argmax:
    """Each target word with the source word of the greatest weight; many may share one.

    >>> sorted(Argmax()(torch.tensor([[0.7, 0.3], [0.1, 0.2]]), torch.tensor([0.0, 0.7])))
    [(0, 0)]

    Args:
        null: A row with more than this on no word has no link.
    """

    null: float = 0.5

    def __post_init__(self) -> None:
        _check_share("null", self.null)

    def __call__(self, weights: Weights, nothing: NullWeights | None = None) -> Links:
        return _to_links(_argmax_mask(weights, -1) & _not_null(weights, nothing, self.null))


@dataclass(frozen=True)
class Threshold:
    """Every pair whose weight is above a threshold: none, one or several for a word.

    >>> sorted(Threshold(0.25)(torch.tensor([[0.7, 0.3], [0.1, 0.2]])))
    [(0, 0), (1, 0)]
    """

    threshold: float = 0.3
    null: float = 0.5

    def __post_init__(self) -> None:
        _check_share("threshold", self.threshold)
        _check_share("null", self.null)

    def __call__(self, weights: Weights, nothing: NullWeights | None = None) -> Links:
        return _to_links((weights > self.threshold) & _not_null(weights, nothing, self.null))


@dataclass(frozen=True)
class Mutual:
    """Pairs that are the greatest both of their row and of their column.

    >>> sorted(Mutual()(torch.tensor([[0.7, 0.3], [0.4, 0.6]])))
    [(0, 0), (1, 1)]
    """

    null: float = 0.5

    def __post_init__(self) -> None:
        _check_share("null", self.null)

    def __call__(self, weights: Weights, nothing: NullWeights | None = None) -> Links:
        both = _argmax_mask(weights, -1) & _argmax_mask(weights, 0)
        return _to_links(both & _not_null(weights, nothing, self.null))


def _argmax_mask(weights: Weights, axis: int) -> Bool[Tensor, "target source"]:
    """True at the maximum along an axis, the first of equals; nowhere if all are 0."""
    if not weights.numel():
        return torch.zeros_like(weights, dtype=torch.bool)
    best = weights.argmax(axis, keepdim=True)
    return torch.zeros_like(weights, dtype=torch.bool).scatter_(axis, best, True) & (weights > 0)


def _not_null(
    weights: Weights, nothing: NullWeights | None, null: float
) -> Bool[Tensor, "target #source"]:
    """Rows that are not aligned to null."""
    if nothing is None:
        return torch.ones(len(weights), 1, dtype=torch.bool, device=weights.device)
    return (nothing <= null)[:, None]


def _to_links(chosen: Bool[Tensor, "target source"]) -> Links:
    return frozenset((source, target) for target, source in chosen.nonzero().tolist())
