"""The value of a metric with its signature."""

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class MetricScore:
    """One value with everything needed to reproduce it."""

    name: str
    value: float
    signature: str
    """How it was computed: options and versions."""

    count: int
    """Number of sentences or tokens."""

    interval: tuple[float, float] | None = None
    """95 % over resampled test sets."""

    higher_is_better: bool = True

    def as_json(self) -> dict[str, Any]:
        """For JSON; a non-finite value is None, since JSON has none.

        >>> MetricScore("exact", 50.0, "nrefs:1", 2).as_json()
        {'name': 'exact', 'value': 50.0, 'interval': None, 'count': 2, 'signature': 'nrefs:1'}
        """
        return {
            "name": self.name,
            "value": _finite_or_none(self.value),
            "interval": None
            if self.interval is None
            else [_finite_or_none(end) for end in self.interval],
            "count": self.count,
            "signature": self.signature,
        }

    def __str__(self) -> str:
        value = f"{self.name} {self.value:.2f}"
        if self.interval is not None:
            value += f" [{self.interval[0]:.2f}, {self.interval[1]:.2f}]"
        return f"{value} ({self.signature})"


def _finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
