"""Check the options of scores, selections and masks."""

import math
from collections.abc import Callable
from numbers import Integral, Real

from regard.attention.core.errors import OptionError, shown

LARGEST = 1 << 62
"""Positions are 64-bit integers, and so must be sums of two of these."""


def check_number(
    name: str,
    value: float,
    needed: str = "a finite number",
    in_range: Callable[[float], bool] = math.isfinite,
) -> float:
    """Raise unless it is a finite number, within its range."""
    given: object = value  # NumPy's numbers pass, too
    if isinstance(given, Real) and math.isfinite(given) and in_range(value):
        return value
    raise OptionError(f"{name} is {shown(given)}. Give {needed}.")


def check_positive(name: str, value: float) -> float:
    """Raise unless it is above 0."""
    return check_number(name, value, "a finite number greater than 0", lambda given: given > 0)


def check_int(name: str, value: int, minimum: int = 0, maximum: int = LARGEST) -> int:
    """Raise unless it is an integer in this range."""
    given: object = value
    if isinstance(given, Integral) and minimum <= value <= maximum:
        return value
    unbounded = maximum == LARGEST and not (isinstance(given, Integral) and value > LARGEST)
    needed = f", {minimum} or more" if unbounded else f" from {minimum} to {maximum}"
    raise OptionError(f"{name} is {shown(given)}. Give a whole number{needed}.")
