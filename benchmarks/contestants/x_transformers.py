"""x-transformers' `Attend`: what is inside its attention, without projections."""

from collections.abc import Callable
from typing import Any

from x_transformers.attend import Attend

from benchmarks.contestants.inputs import drawn
from benchmarks.contestants.stepping import stepped


def dot(case: dict[str, Any]) -> Callable[[], object]:
    """A scaled dot product, with its `flash` or without."""
    shape = case["batch"], case["heads"], case["length"], case["size"]
    q, k, values = leaves = drawn(shape, shape, shape, step=case["step"])
    attend = Attend(flash=False)
    return stepped(lambda: attend(q, k, values)[0], leaves, case)


def dot_flash(case: dict[str, Any]) -> Callable[[], object]:
    """The same with `flash=True`."""
    shape = case["batch"], case["heads"], case["length"], case["size"]
    q, k, values = leaves = drawn(shape, shape, shape, step=case["step"])
    attend = Attend(flash=True)
    return stepped(lambda: attend(q, k, values)[0], leaves, case)
