"""From soft to hard: which weights are links.

A target word that looks mostly at nothing (a null position, the end of the source) has no link.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.core.options import check_number
from regard.seq2seq.alignment.links import Links

Weights = Float[Tensor, "target source"]
Nothing = Float[Tensor, " target"]
"""How much of each row lies on no word."""


@runtime_checkable
class Extraction(Protocol):
    """A rule that makes links of weights."""

    def __call__(self, weights: Weights, nothing: Nothing | None = None) -> Links: ...


def _share(name: str, value: float) -> None:
    check_number(name, value, "a number from 0 to 1", lambda given: 0 <= given <= 1)


@dataclass(frozen=True)
class Argmax:
    """Each target word with the source word that it read most; many may share one.

    >>> sorted(Argmax()(torch.tensor([[0.7, 0.3], [0.1, 0.2]]), torch.tensor([0.0, 0.7])))
    [(0, 0)]

    Args:
        null: A row with more than this on no word has no link.
    """

    null: float = 0.5

    def __post_init__(self) -> None:
        _share("null", self.null)

    def __call__(self, weights: Weights, nothing: Nothing | None = None) -> Links:
        return _links(_greatest(weights, -1) & _looking(weights, nothing, self.null))


@dataclass(frozen=True)
class Threshold:
    """Every pair whose weight is above a threshold: none, one or several for a word.

    >>> sorted(Threshold(0.25)(torch.tensor([[0.7, 0.3], [0.1, 0.2]])))
    [(0, 0), (1, 0)]
    """

    threshold: float = 0.3
    null: float = 0.5

    def __post_init__(self) -> None:
        _share("threshold", self.threshold)
        _share("null", self.null)

    def __call__(self, weights: Weights, nothing: Nothing | None = None) -> Links:
        return _links((weights > self.threshold) & _looking(weights, nothing, self.null))


@dataclass(frozen=True)
class Mutual:
    """Pairs that are the greatest both of their row and of their column.

    >>> sorted(Mutual()(torch.tensor([[0.7, 0.3], [0.4, 0.6]])))
    [(0, 0), (1, 1)]
    """

    null: float = 0.5

    def __post_init__(self) -> None:
        _share("null", self.null)

    def __call__(self, weights: Weights, nothing: Nothing | None = None) -> Links:
        both = _greatest(weights, -1) & _greatest(weights, 0)
        return _links(both & _looking(weights, nothing, self.null))


def _greatest(weights: Weights, axis: int) -> Bool[Tensor, "target source"]:
    """The greatest along an axis, the first of equal ones; none where all are 0."""
    if not weights.numel():
        return torch.zeros_like(weights, dtype=torch.bool)
    place = weights.argmax(axis, keepdim=True)
    return torch.zeros_like(weights, dtype=torch.bool).scatter_(axis, place, True) & (weights > 0)


def _looking(
    weights: Weights, nothing: Nothing | None, null: float
) -> Bool[Tensor, "target #source"]:
    """Rows that look at a word."""
    if nothing is None:
        return torch.ones(len(weights), 1, dtype=torch.bool, device=weights.device)
    return (nothing <= null)[:, None]


def _links(chosen: Bool[Tensor, "target source"]) -> Links:
    return frozenset((source, target) for target, source in chosen.nonzero().tolist())
