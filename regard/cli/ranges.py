"""What a number on the command line may be: checked before anything is loaded."""

from collections.abc import Callable

from regard.attention.core.errors import OptionError, shown
from regard.attention.core.options import check_number

MOST_SEED = 2**63 - 1

Whole = Callable[[int | None], int | None]
Number = Callable[[float | None], float | None]


def whole_from(option: str, least: int, most: int) -> Whole:
    """For an option that is a whole number in a range."""

    def checked(value: int | None) -> int | None:
        if value is None or least <= value <= most:
            return value
        raise OptionError(
            f"{option} is {shown(value)}. Give a whole number from {least} to {most}."
        )

    return checked


def number_that(option: str, needed: str, fits: Callable[[float], bool]) -> Number:
    """For an option that is a finite number of some kind."""

    def checked(value: float | None) -> float | None:
        return None if value is None else check_number(option, value, needed, fits)

    return checked


def share(option: str) -> Number:
    """For an option that is a number from 0 to 1."""
    return number_that(option, "a number from 0 to 1", lambda value: 0 <= value <= 1)
