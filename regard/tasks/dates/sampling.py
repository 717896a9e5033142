"""Random examples: each is a function of a seed, a split and a number, through a hash.

A day belongs to one split, whatever the seed. So no day of the test split is ever trained on, and,
as no string has two dates, no string of it is either.
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
"""Which tenths of the days each split has."""


def draw(count: int, seed: int, split: str) -> list[Example]:
    """So many examples of "train", "valid" or "test", no string twice.

    Languages, forms and days are uniform. A larger draw begins with the smaller one.
    """
    if split not in TENTHS:
        raise DataError(f"the split is {split!r}. Choose {', '.join(TENTHS)}.")
    return _distinct(count, seed, split, forms.training_forms(), days(split))


def held_out(count: int, seed: int) -> list[Example]:
    """Forms that are never trained on, on days of the test split."""
    return _distinct(count, seed, "held out", forms.held_out_forms(), days("test"))


def check_unambiguous(examples: Iterable[Example]) -> None:
    """Raise if a string has two dates."""
    by_source: dict[str, Example] = {}
    for example in examples:
        _add(example, by_source)


def _add(example: Example, by_source: dict[str, Example]) -> None:
    earlier = by_source.setdefault(example.source, example)
    if earlier.target != example.target:
        raise DataError(
            f"{example.source!r} has two dates: {earlier.target} ({earlier.language}, "
            f"{earlier.form}) and {example.target} ({example.language}, {example.form}). "
            "Remove one of these forms."
        )


def _distinct(
    count: int, seed: int, split: str, families: Sequence[Sequence[Form]], dates: Sequence[date]
) -> list[Example]:
    """The first examples by number, without repeated strings."""
    if count < 0:
        raise DataError(f"the number of dates is {count}. Give 0 or more.")
    by_source: dict[str, Example] = {}
    tries = 2 * count + 100
    for number in range(tries):
        if len(by_source) == count:
            return list(by_source.values())
        _add(_example(_hash(seed, split, number), families, dates), by_source)
    raise DataError(
        f"{tries} draws for {split} gave {len(by_source)} different strings, not {count}: "
        f"ask for {len(by_source)} or fewer."
    )


def _example(
    hashed: tuple[int, int, int], families: Sequence[Sequence[Form]], dates: Sequence[date]
) -> Example:
    family = families[hashed[0] % len(families)]
    return compose(family[hashed[1] % len(family)], dates[hashed[2] % len(dates)])


@cache
def days(split: str) -> tuple[date, ...]:
    """All days of a split."""
    every = (FIRST + timedelta(number) for number in range((LAST - FIRST).days + 1))
    return tuple(day for day in every if _tenth(day) in TENTHS[split])


def _tenth(day: date) -> int:
    return _hash(0, "split", day.toordinal())[0] % 10


def _hash(seed: int, split: str, number: int) -> tuple[int, int, int]:
    """Three large numbers, whose remainders are uniform to 1 in 10¹⁴."""
    digest = blake2b(f"{split} {seed} {number}".encode(), digest_size=24).digest()
    first, second, third = struct.unpack("<3Q", digest)
    return first, second, third
