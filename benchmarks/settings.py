"""What a run was asked for, and what a benchmark gives back."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.measure import CAREFUL, QUICK, Plan
from benchmarks.results import Row


@dataclass(frozen=True)
class Settings:
    """How carefully to measure, with how many threads, and with whom."""

    quick: bool = False
    threads: tuple[int, ...] = (1, 2)
    peers: bool = True
    data: Path | None = None
    """A folder with what a benchmark reads, where it reads anything."""

    @property
    def plan(self) -> Plan:
        """How many rounds."""
        return QUICK if self.quick else CAREFUL

    def choose(self, careful: Iterable[Any], quick: Iterable[Any]) -> list[Any]:
        """The cases of a careful run, or those of a quick one."""
        return list(quick if self.quick else careful)


@dataclass
class Outcome:
    """What a benchmark found: rows, what was promised, versions of those who took part."""

    rows: list[Row]
    promises: list[Row] = field(default_factory=list)
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)


def promise(
    what: str, rows: Iterable[Row], value: Callable[[Row], float | None], **bound: float
) -> Row:
    """What was promised of these rows, and the worst of them: `at_least=…` or `at_most=…`."""
    ((kind, needed),) = bound.items()
    values = [found for found in map(value, rows) if found is not None]
    worst = None if not values else min(values) if kind == "at_least" else max(values)
    met = worst is not None and (worst >= needed if kind == "at_least" else worst <= needed)
    return {
        "what": what, "bound": kind, "needed": needed, "worst": worst,
        "met": met, "rows": len(values),
    }  # fmt: skip


def median(row: Row, key: str) -> float | None:
    """The median of one of a row's measurements, if it has it."""
    found: Mapping[str, float] | None = row.get(key)
    return None if found is None else found["median"]
