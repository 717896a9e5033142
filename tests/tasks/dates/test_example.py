"""The gold alignment: hand-checked in every script, and its laws on what is drawn."""

import unicodedata
from datetime import date

import pytest

from regard.tasks.dates import Example, draw, held_out
from regard.tasks.dates.forms import Form, compose, held_out_forms, training_forms

DAY = date(1979, 5, 3)
BECAME = {"y": range(4), "m": range(5, 7), "d": range(8, 10), " ": ()}

# A source; below each of its characters the part that it belongs to; below that the place in
# 1979-05-03 of the digit that it surely is. All in the order of reading, from right to left too.
BY_HAND = {
    ("de", "long"): (
        "3. Mai 1979",
        "d  mmm yyyy",
        "9      0123",
    ),
    ("de", "medium"): (
        "03.05.1979",
        "dd mm yyyy",
        "89 56 0123",
    ),
    ("en", "full, lower-cased"): (
        "thursday, may 3, 1979",
        "          mmm d  yyyy",
        "              9  0123",
    ),
    ("ar", "long, native digits"): (
        "٣ مايو ١٩٧٩",
        "d mmmm yyyy",
        "9      0123",
    ),
    ("ar", "medium, native digits"): (
        "٠٣/٠٥/١٩٧٩",
        "dd mm yyyy",
        "89 56 0123",
    ),
    ("fa", "medium, native digits"): (
        "۳ مه ۱۹۷۹",
        "d mm yyyy",
        "9    0123",
    ),
    ("he", "full"): (
        "יום חמישי, 3 במאי 1979",
        "           d  mmm yyyy",
        "           9      0123",
    ),
    ("ja", "full"): (
        "1979年5月3日木曜日",
        "yyyy m d    ",
        "0123 6 9    ",
    ),
    ("zh", "weekday moved"): (
        "星期四1979年5月3日",
        "   yyyy m d ",
        "   0123 6 9 ",
    ),
    ("ko", "long"): (
        "1979년 5월 3일",
        "yyyy  mm d ",
        "0123  6  9 ",
    ),
    ("vi", "year first"): (
        "năm 1979 tháng 5 ngày 3",
        "    yyyy mmmmmmm      d",
        "    0123       6      9",
    ),
    ("th", "medium, native digits"): (
        "๓ พ.ค. ๑๙๗๙",
        "d mmmm yyyy",
        "9      0123",
    ),
    ("th", "long"): (
        "3 พฤษภาคม ค.ศ. 1979",
        "d mmmmmmm      yyyy",
        "9              0123",
    ),
    ("th", "Buddhist era"): (
        "3 พฤษภาคม พ.ศ. 2522",
        "d mmmmmmm      yyyy",
        "9                  ",
    ),
    ("ru", "long"): (
        "3 мая 1979 г.",
        "d mmm yyyy   ",
        "9     0123   ",
    ),
    ("el", "month first"): (
        "Μαΐου 3 1979",
        "mmmmm d yyyy",
        "      9 0123",
    ),
    ("hi", "long, native digits"): (
        "३ मई १९७९",
        "d mm yyyy",
        "9    0123",
    ),
    ("bn", "long, native digits"): (
        "৩ মে, ১৯৭৯",
        "d mm  yyyy",
        "9     0123",
    ),
    ("ka", "medium"): (
        "3 მაი. 1979",
        "d mmm  yyyy",
        "9      0123",
    ),
    ("hy", "long"): (
        "03 մայիսի, 1979 թ.",
        "dd mmmmmm  yyyy   ",
        "89         0123   ",
    ),
    ("lt", "medium"): (
        "1979-05-03",
        "yyyy mm dd",
        "0123 56 89",
    ),
}


def form_called(code: str, name: str) -> Form:
    every = [form for forms in training_forms() + held_out_forms() for form in forms]
    return next(form for form in every if (form.language, form.name) == (code, name))


@pytest.mark.parametrize("key", BY_HAND, ids=" ".join)
def test_hand_checked(key: tuple[str, str]) -> None:
    source, parts, places = BY_HAND[key]
    assert len(source) == len(parts) == len(places)
    example = compose(form_called(*key), DAY)
    assert (example.source, example.target) == (source, "1979-05-03")
    assert (example.language, example.form) == key
    assert example.possible == {
        (place, target) for place, part in enumerate(parts) for target in BECAME[part]
    }
    assert example.sure == {(at, int(to)) for at, to in enumerate(places) if to != " "}


def test_german_in_full() -> None:
    example = compose(form_called("de", "long"), DAY)
    assert example.sure == {(0, 9), (7, 0), (8, 1), (9, 2), (10, 3)}
    assert sorted(example.possible) == [
        (0, 8), (0, 9),
        (3, 5), (3, 6), (4, 5), (4, 6), (5, 5), (5, 6),
        (7, 0), (7, 1), (7, 2), (7, 3), (8, 0), (8, 1), (8, 2), (8, 3),
        (9, 0), (9, 1), (9, 2), (9, 3), (10, 0), (10, 1), (10, 2), (10, 3),
    ]  # fmt: skip


def test_two_digits_stand_for_tens_and_units() -> None:
    example = compose(form_called("ja", "long"), date(2011, 10, 21))
    assert example.source == "2011年10月21日"
    assert example.sure == {
        (0, 0), (1, 1), (2, 2), (3, 3), (5, 5), (6, 6), (8, 8), (9, 9),
    }  # fmt: skip


@pytest.fixture(scope="module")
def drawn() -> list[Example]:
    return [*draw(1999, 7, "train"), *held_out(101, 7)]


def by_target(example: Example) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {target: set() for target in range(10)}
    for source, target in example.possible:
        found[target].add(source)
    return found


def test_sure_links_are_possible_and_join_the_same_digits(
    drawn: list[Example], unchecked: None
) -> None:
    for example in drawn:
        assert example.sure <= example.possible
        for source, target in example.sure:
            digit = unicodedata.decimal(example.source[source])
            assert digit == int(example.target[target]), example
        assert len({source for source, _ in example.sure}) == len(example.sure), example
        assert len({target for _, target in example.sure}) == len(example.sure), example


def test_hyphens_are_linked_to_nothing_and_all_else_is_linked(
    drawn: list[Example], unchecked: None
) -> None:
    for example in drawn:
        linked = {target for target, sources in by_target(example).items() if sources}
        assert linked == {0, 1, 2, 3, 5, 6, 8, 9}, example


def test_year_month_and_day_are_apart(drawn: list[Example], unchecked: None) -> None:
    for example in drawn:
        sources = by_target(example)
        year, month, day = sources[0], sources[5], sources[8]
        assert len(year | month | day) == len(year) + len(month) + len(day), example
        assert all(max(part) - min(part) + 1 == len(part) for part in (year, month, day)), example


def test_every_digit_of_a_source_is_in_one_part_and_surely_linked(
    drawn: list[Example], unchecked: None
) -> None:
    for example in drawn:
        digits = {place for place, text in enumerate(example.source) if text.isdecimal()}
        linked = {source for source, _ in example.sure}
        if example.form == "Buddhist era":
            assert not {target for _, target in example.sure} & {0, 1, 2, 3}
        else:
            assert digits == linked, example
