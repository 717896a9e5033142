"""The entmax package."""

from collections.abc import Callable
from functools import partial
from typing import Any

from entmax import entmax15, entmax_bisect, sparsemax

from benchmarks.contestants.inputs import drawn
from benchmarks.contestants.stepping import stepped
from benchmarks.steps import BOTH

PARTIAL = 64
"""How many of the largest it sorts, where it is told to sort a part."""


def sparse(case: dict[str, Any], **options: int) -> Callable[[], object]:
    """Its exact functions where it has one, halving where it has not."""
    (numbers,) = drawn((case["rows"], case["keys"]))
    given = (numbers * case["spread"]).requires_grad_(case["step"] == BOTH)
    exact = {2.0: sparsemax, 1.5: entmax15}.get(case["alpha"])
    chosen = partial(exact or entmax_bisect, dim=-1, **options)
    chosen = chosen if exact else partial(chosen, alpha=case["alpha"])
    return stepped(lambda: chosen(given), [given], case)


def sparse_partly(case: dict[str, Any]) -> Callable[[], object]:
    """The same, told that few weights are not zero."""
    return sparse(case, k=PARTIAL)
