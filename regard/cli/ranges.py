"""Range checks of numbers on the command line, before anything is loaded."""

from collections.abc import Callable

from regard.attention.core.errors import OptionError, shown
from regard.attention.core.options import check_number

MOST_SEED = 2**63 - 1

IntegerCheck = Callable[[int | None], int | None]
NumberCheck = Callable[[float | None], float | None]


def integer_range(option: str, least: int, most: int) -> IntegerCheck:
    """A check for an integer option in a range."""

    def checked(value: int | None) -> int | None:
        if value is None or least <= value <= most:
            return value
        raise OptionError(
            f"{option} is {shown(value)}. Give a whole number from {least} to {most}."
        )

    return checked


def number_where(option: str, needed: str, fits: Callable[[float], bool]) -> NumberCheck:
    """A check for an option that is a finite number."""

    def checked(value: float | None) -> float | None:
        return None if value is None else check_number(option, value, needed, fits)

    return checked


def share(option: str) -> NumberCheck:
    """A check for an option that is a number from 0 to 1."""
    return number_where(option, "a number from 0 to 1", lambda value: 0 <= value <= 1)
