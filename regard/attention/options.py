"""What an option of a mechanism may be."""

import math
from collections.abc import Callable
from numbers import Integral, Real

from regard.attention.errors import OptionError, shown


def number(
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


def positive(name: str, value: float) -> float:
    """Raise unless it is above 0."""
    return number(name, value, "a finite number greater than 0", lambda given: given > 0)


def whole(name: str, value: int, least: int = 0) -> int:
    """Raise unless it is a whole number of at least so much."""
    given: object = value
    if isinstance(given, Integral) and value >= least:
        return value
    raise OptionError(f"{name} is {shown(given)}. Give a whole number, {least} or more.")
