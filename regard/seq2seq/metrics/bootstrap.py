"""How much a score owes to the test set: an interval over resampled ones (Koehn 2004)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy
from jaxtyping import Float

from regard.attention.core.options import check_int

Statistics = Float[numpy.ndarray, "sentence statistic"]
Summed = Float[numpy.ndarray, " statistic"]


@dataclass(frozen=True)
class Bootstrap:
    """Draw test sets from the test set, and see where 95 of 100 scores lie.

    Args:
        draws: How many test sets are drawn.
        seed: The interval is a function of it and of the data.
    """

    draws: int = 1000
    seed: int = 12345

    def __post_init__(self) -> None:
        check_int("draws", self.draws, least=40)
        check_int("seed", self.seed)

    def interval(
        self, statistics: Statistics, score: Callable[[Summed], float]
    ) -> tuple[float, float]:
        """Of a score that is a function of the sum of its sentences' statistics."""
        sentences = len(statistics)
        # As sacrebleu draws them, so that its interval is this one.
        drawn = numpy.random.default_rng(self.seed).choice(
            sentences, size=(self.draws, sentences), replace=True
        )
        scores = sorted(score(statistics[numbers].sum(0)) for numbers in drawn)
        outside = self.draws // 40
        return scores[outside], scores[-1 - outside]
