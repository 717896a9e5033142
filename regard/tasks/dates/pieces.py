"""A CLDR pattern in pieces, each formatted alone, so that the span of each is known."""

from datetime import date
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Literal, NamedTuple

from regard.seq2seq.errors import DataError

FieldName = Literal["year", "month", "day", "weekday", "era", "literal"]

PARTS: dict[str, FieldName] = {
    "y": "year",
    "M": "month",
    "L": "month",
    "d": "day",
    "E": "weekday",
    "c": "weekday",
    "G": "era",
}
"""CLDR's letters for the fields of a date."""


class Piece(NamedTuple):
    """A field or a literal of a pattern."""

    part: FieldName
    text: str
    """The letters of a field, "MMMM", or the text of a literal."""


@cache
def parse(pattern: str) -> tuple[Piece, ...]:
    """A pattern in pieces.

    >>> [piece.text for piece in parse("d MMMM, y թ.")]
    ['d', ' ', 'MMMM', ', ', 'y', ' թ.']
    """
    return tuple(_piece(kind, value) for kind, value in _babel("dates").tokenize_pattern(pattern))


def _piece(kind: str, value: str | tuple[str, int]) -> Piece:
    if kind == "chars":
        return Piece("literal", str(value))
    letter, times = str(value[0]), int(value[1])
    if letter not in PARTS:
        raise DataError(
            f"The pattern has the field {letter * times!r}, which is no part of a date: "
            f"use some of {', '.join(PARTS)}, and put words into quotes."
        )
    return Piece(PARTS[letter], letter * times)


def field_value(part: FieldName, day: date) -> int:
    """The value of a field for a day; 0 for a literal."""
    match part:
        case "year":
            return day.year
        case "month":
            return day.month
        case "day":
            return day.day
        case "weekday":
            return day.weekday()
        case _:
            return 0


@cache
def format_piece(code: str, piece: Piece, value: int) -> str:
    """One piece as CLDR has it for a language.

    >>> format_piece("de", Piece("month", "MMMM"), 3)
    'März'
    """
    if piece.part == "literal":
        return piece.text
    return str(
        _babel("dates").format_date(_example_day(piece.part, value), piece.text, locale=code)
    )


def _example_day(part: FieldName, value: int) -> date:
    """Some day with this value of the field."""
    match part:
        case "year":
            return date(value, 1, 1)
        case "month":
            return date(2001, value, 1)
        case "day":
            return date(2001, 1, value)
        case _:
            return date(2001, 1, 1 + value)  # it was a Monday


@cache
def pattern_of(code: str, width: str) -> str:
    """The pattern that CLDR has for dates of a width: "full", "long" or "medium"."""
    return str(_babel("core").Locale.parse(code).date_formats[width].pattern)


def _babel(module: str) -> ModuleType:
    """Imported late, for only the demo needs it."""
    try:
        return import_module(f"babel.{module}")
    except ImportError as error:
        raise DataError(
            "Dates are written with babel, which is not installed. "
            "Install it: pip install 'regard[demo]'"
        ) from error
