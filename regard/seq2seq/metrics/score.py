"""What a metric gives back."""

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class MetricScore:
    """One figure with everything needed to get it again."""

    name: str
    value: float
    signature: str
    """How it was computed: options and versions."""

    count: int
    """Over how many sentences, or tokens."""

    interval: tuple[float, float] | None = None
    """Where 95 of 100 resampled test sets lie."""

    def as_json(self) -> dict[str, Any]:
        """As plain data; what is no finite number is None, since JSON has no word for it.

        >>> MetricScore("exact", 50.0, "nrefs:1", 2).as_json()
        {'name': 'exact', 'value': 50.0, 'interval': None, 'count': 2, 'signature': 'nrefs:1'}
        """
        return {
            "name": self.name,
            "value": _plain(self.value),
            "interval": None if self.interval is None else [_plain(end) for end in self.interval],
            "count": self.count,
            "signature": self.signature,
        }

    def __str__(self) -> str:
        value = f"{self.name} {self.value:.2f}"
        if self.interval is not None:
            value += f" [{self.interval[0]:.2f}, {self.interval[1]:.2f}]"
        return f"{value} ({self.signature})"


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None
