"""What an option of a mechanism may be."""

import math
from collections.abc import Callable
from numbers import Integral, Real

from regard.attention.core.errors import OptionError, shown

MOST = 1 << 62
"""Places are 64-bit numbers, and sums of two of these must be, too."""


def check_number(
    name: str,
    value: float,
    needed: str = "a finite number",
    fits: Callable[[float], bool] = math.isfinite,
) -> float:
    """Raise unless it is a finite number that fits."""
    given: object = value  # NumPy's numbers are welcome too
    if isinstance(given, Real) and math.isfinite(given) and fits(value):
        return value
    raise OptionError(f"{name} is {shown(given)}. Give {needed}.")


def check_positive(name: str, value: float) -> float:
    """Raise unless it is above 0."""
    return check_number(name, value, "a finite number greater than 0", lambda given: given > 0)


def check_int(name: str, value: int, least: int = 0, most: int = MOST) -> int:
    """Raise unless it is a whole number in this range."""
    given: object = value
    if isinstance(given, Integral) and least <= value <= most:
        return value
    unbounded = most == MOST and not (isinstance(given, Integral) and value > MOST)
    needed = f", {least} or more" if unbounded else f" from {least} to {most}"
    raise OptionError(f"{name} is {shown(given)}. Give a whole number{needed}.")
