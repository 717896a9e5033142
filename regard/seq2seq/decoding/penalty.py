"""Length penalties: by what a hypothesis's log-probability is divided to rank it.

Every token makes a hypothesis less probable, so that a search by plain log-probability prefers
short ones, and empty ones most of all. A divisor that grows with the length corrects this.

| | divisor | |
|---|---|---|
| `PowerPenalty(0)` | 1 | plain log-probability |
| `PowerPenalty(1)` | length | the mean over tokens: the usual choice |
| `WuPenalty(0.6)` | ((5 + length) / 6)^0.6 | gentler for short ones (Wu 2016, equation 14) |
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from regard.attention.core.options import check_number
from regard.seq2seq.decoding.bounds import MAX_ALPHA


@runtime_checkable
class Penalty(Protocol):
    """A divisor above 0 for each length; the length includes EOS."""

    def __call__(self, length: int) -> float: ...


@dataclass(frozen=True)
class PowerPenalty:
    """length^α. With α = 1 hypotheses are ranked by their mean, with α = 0 by their sum.

    >>> PowerPenalty(1.0)(8), PowerPenalty(0.0)(8)
    (8.0, 1.0)
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        _check_alpha(self.alpha)

    def __call__(self, length: int) -> float:
        return float(length) ** self.alpha


@dataclass(frozen=True)
class WuPenalty:
    """((5 + length) / 6)^α (Wu 2016, equation 14).

    >>> WuPenalty(1.0)(1), WuPenalty(1.0)(7)
    (1.0, 2.0)
    """

    alpha: float = 0.6

    def __post_init__(self) -> None:
        _check_alpha(self.alpha)

    def __call__(self, length: int) -> float:
        return float((5 + length) / 6) ** self.alpha


def _check_alpha(alpha: float) -> None:
    needed = f"a number from 0 to {MAX_ALPHA:g}"
    check_number("alpha", alpha, needed, lambda given: 0 <= given <= MAX_ALPHA)
