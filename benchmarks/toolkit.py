"""What the measurements of the toolkit have in common."""

from collections.abc import Sequence

from benchmarks.results import Row


def paced(rows: Sequence[Row], unit: str, amount: int) -> list[Row]:
    """The same rows with what was done in a CPU second."""
    for row in rows:
        if "cpu" in row:
            row["pace"] = {"unit": unit, "median": round(amount / row["cpu"]["median"], 1)}
    return list(rows)
