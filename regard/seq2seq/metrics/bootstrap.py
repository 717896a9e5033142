"""Confidence intervals by bootstrap resampling of the test set (Koehn 2004)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy
from jaxtyping import Float

from regard.attention.core.options import check_int

Statistics = Float[numpy.ndarray, "sentence statistic"]
Summed = Float[numpy.ndarray, " statistic"]


@dataclass(frozen=True)
class Bootstrap:
    """A 95 % interval of a score over resampled test sets.

    Args:
        draws: Number of resampled test sets.
        seed: Of the resampling.
    """

    draws: int = 1000
    seed: int = 12345

    def __post_init__(self) -> None:
        check_int("draws", self.draws, minimum=40)
        check_int("seed", self.seed)

    def interval(
        self, statistics: Statistics, score: Callable[[Summed], float]
    ) -> tuple[float, float]:
        """The interval of a score that is a function of summed sentence statistics."""
        sentences = len(statistics)
        # Drawn as sacrebleu does, so that the intervals are equal.
        drawn = numpy.random.default_rng(self.seed).choice(
            sentences, size=(self.draws, sentences), replace=True
        )
        scores = sorted(score(statistics[numbers].sum(0)) for numbers in drawn)
        outside = self.draws // 40
        return scores[outside], scores[-1 - outside]
