"""Length penalties: by what a hypothesis's log-probability is divided to rank it.

Every token makes a hypothesis less probable, so that a search by plain log-probability likes short
ones, and empty ones most of all. Dividing by something that grows with the length undoes it.

| | divisor | |
|---|---|---|
| `Power(0)` | 1 | plain log-probability |
| `Power(1)` | length | the average of a token: the usual choice |
| `Wu(0.6)` | ((5 + length) / 6)^0.6 | gentler with the first tokens (Wu 2016, equation 14) |
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from regard.attention.core.options import check_number
from regard.seq2seq.decoding.bounds import MOST_ALPHA


@runtime_checkable
class Penalty(Protocol):
    """A divisor above 0 for each length; the length counts `END`."""

    def __call__(self, length: int) -> float: ...


@dataclass(frozen=True)
class PowerPenalty:
    """length^α. By α = 1 hypotheses are ranked by their average, by α = 0 as they are.

    >>> PowerPenalty(1.0)(8), PowerPenalty(0.0)(8)
    (8.0, 1.0)
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        _checked(self.alpha)

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
        _checked(self.alpha)

    def __call__(self, length: int) -> float:
        return float((5 + length) / 6) ** self.alpha


def _checked(alpha: float) -> None:
    needed = f"a number from 0 to {MOST_ALPHA:g}"
    check_number("alpha", alpha, needed, lambda given: 0 <= given <= MOST_ALPHA)
