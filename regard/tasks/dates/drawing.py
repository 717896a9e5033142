"""Which examples there are: each a function of a seed, a purpose and a number, through a hash.

A day belongs to one purpose, whatever the seed. So no day of a test is ever trained on, and, as no
string has two dates, no string of a test is either.
"""

import struct
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from functools import cache
from hashlib import blake2b

from regard.seq2seq.errors import DataError
from regard.tasks.dates import forms
from regard.tasks.dates.example import Example
from regard.tasks.dates.forms import Form, compose

FIRST, LAST = date(1900, 1, 1), date(2099, 12, 31)

TENTHS = {"train": range(2, 10), "valid": range(1, 2), "test": range(1)}
"""For each purpose its tenths of the days."""


def draw(count: int, seed: int, purpose: str) -> list[Example]:
    """So many examples for "train", "valid" or "test", no string twice.

    Languages, forms and days are uniform. A larger draw begins with the smaller one.
    """
    if purpose not in TENTHS:
        raise DataError(
            f"Dates are drawn for {', '.join(TENTHS)}, not for {purpose!r}: name one of these."
        )
    return _distinct(count, seed, purpose, forms.trained(), days(purpose))


def held_out(count: int, seed: int) -> list[Example]:
    """Forms that are never trained on, on days that are not either: to be shown honestly."""
    return _distinct(count, seed, "held out", forms.held_out(), days("test"))


def check_one_date_each(examples: Iterable[Example]) -> None:
    """Assert that no string has two dates."""
    found: dict[str, Example] = {}
    for example in examples:
        _add(example, found)


def _add(example: Example, found: dict[str, Example]) -> None:
    earlier = found.setdefault(example.source, example)
    if earlier.target != example.target:
        raise DataError(
            f"{example.source!r} has two dates: {earlier.target} ({earlier.language}, "
            f"{earlier.form}) and {example.target} ({example.language}, {example.form}). "
            "Take one of these forms out."
        )


def _distinct(
    count: int, seed: int, purpose: str, families: Sequence[Sequence[Form]], chosen: Sequence[date]
) -> list[Example]:
    """The first examples by number, those left out whose string was there already."""
    if count < 0:
        raise DataError(f"{count} dates cannot be drawn: ask for 0 or more.")
    found: dict[str, Example] = {}
    tries = 2 * count + 100
    for number in range(tries):
        if len(found) == count:
            return list(found.values())
        _add(_example(_hashed(seed, purpose, number), families, chosen), found)
    raise DataError(
        f"{tries} draws for {purpose} gave {len(found)} different strings, not {count}: "
        f"ask for {len(found)} or fewer."
    )


def _example(
    drawn: tuple[int, int, int], families: Sequence[Sequence[Form]], chosen: Sequence[date]
) -> Example:
    family = families[drawn[0] % len(families)]
    return compose(family[drawn[1] % len(family)], chosen[drawn[2] % len(chosen)])


@cache
def days(purpose: str) -> tuple[date, ...]:
    """All days that belong to a purpose."""
    every = (FIRST + timedelta(number) for number in range((LAST - FIRST).days + 1))
    return tuple(day for day in every if _tenth(day) in TENTHS[purpose])


def _tenth(day: date) -> int:
    return _hashed(0, "split", day.toordinal())[0] % 10


def _hashed(seed: int, purpose: str, number: int) -> tuple[int, int, int]:
    """Three large numbers. What is drawn by a remainder of them is uniform to 1 in 10¹⁴."""
    digest = blake2b(f"{purpose} {seed} {number}".encode(), digest_size=24).digest()
    first, second, third = struct.unpack("<3Q", digest)
    return first, second, third
