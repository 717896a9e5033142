"""Draws are functions of seed, split and number; nothing of a test is trained on."""

from collections import Counter
from datetime import date, timedelta

import pytest

from regard.seq2seq.errors import DataError
from regard.tasks.dates import LANGUAGES, draw, forms, held_out, sampling
from regard.tasks.dates.example import Example
from regard.tasks.dates.forms import Form, compose
from regard.tasks.dates.sampling import FIRST, LAST, days

SPLITS = ("train", "valid", "test")


def every_string_of(year: int) -> dict[str, set[str]]:
    """Every string of every form for every day of a year, with its dates."""
    found: dict[str, set[str]] = {}
    for family in forms.training_forms():
        for form in family:
            day = date(year, 1, 1)
            while day.year == year:
                example = compose(form, day)
                found.setdefault(example.source, set()).add(example.target)
                day += timedelta(1)
    return found


def test_no_string_has_two_dates_in_a_whole_leap_year(unchecked: None) -> None:
    found = every_string_of(2000)
    assert len(found) > 90_000
    assert {text: dates for text, dates in found.items() if len(dates) > 1} == {}


def test_a_larger_draw_begins_with_the_smaller_one() -> None:
    assert draw(307, 5, "train")[:101] == draw(101, 5, "train")


def test_seed_and_split_matter() -> None:
    drawn = {tuple(draw(11, seed, split)) for seed in (1, 2) for split in SPLITS}
    assert len(drawn) == 6


def test_splits_share_no_date_and_no_string_whatever_the_seeds(unchecked: None) -> None:
    drawn = {split: draw(2003, seed, split) for seed, split in enumerate(SPLITS, start=1)}
    for one, other in (("train", "valid"), ("train", "test"), ("valid", "test")):
        assert not {e.target for e in drawn[one]} & {e.target for e in drawn[other]}
        assert not {e.source for e in drawn[one]} & {e.source for e in drawn[other]}


def test_every_day_has_one_split_and_most_are_for_training() -> None:
    every = Counter(day for split in SPLITS for day in days(split))
    assert set(every.values()) == {1}
    assert (min(every), max(every), len(every)) == (FIRST, LAST, (LAST - FIRST).days + 1)
    shares = [len(days(split)) / len(every) for split in SPLITS]
    assert shares == pytest.approx([0.8, 0.1, 0.1], abs=0.01)


def test_draws_are_spread_evenly(unchecked: None) -> None:
    drawn = draw(8000, 3, "train")
    assert len({example.source for example in drawn}) == 8000
    languages = Counter(example.language for example in drawn)
    assert set(languages) == set(LANGUAGES)
    # A count of 200 has a standard deviation of 14: five of them either way.
    assert all(130 < count < 270 for count in languages.values())
    years = Counter(int(example.target[:4]) // 50 for example in drawn)
    assert sorted(years) == [38, 39, 40, 41]
    assert all(1800 < count < 2200 for count in years.values())
    used = {(example.language, example.form) for example in drawn}
    assert used == {
        (form.language, form.name) for family in forms.training_forms() for form in family
    }


def test_held_out_forms_are_never_trained_on_nor_have_other_characters(unchecked: None) -> None:
    drawn = held_out(211, 1)
    assert {example.form for example in drawn} == {"Buddhist era", "language left out"}
    assert {example.target for example in drawn} <= {day.isoformat() for day in days("test")}
    known: set[str] = set()
    for family in forms.training_forms():
        for form in family:
            for example in drawn[:53]:
                trained = compose(form, date.fromisoformat(example.target))
                assert trained.source != example.source
            known.update(*(compose(form, day).source for day in days("train")[:400:3]))
    assert {character for example in drawn for character in example.source} <= known


def test_the_buddhist_era_is_543_years_ahead() -> None:
    (ours,) = {
        int(example.source[-4:]) - int(example.target[:4])
        for example in held_out(37, 2)
        if example.form == "Buddhist era"
    }
    assert ours == 543


def test_nothing_may_be_drawn() -> None:
    assert draw(0, 1, "train") == []


def test_a_wrong_split_is_answered_with_the_right_ones() -> None:
    with pytest.raises(DataError, match=r"the split is 'dev'\. Choose train, valid, test"):
        draw(1, 1, "dev")


def test_a_negative_count_is_refused() -> None:
    with pytest.raises(DataError, match=r"the number of dates is -3\. Give 0 or more"):
        draw(-3, 1, "train")


def test_more_strings_than_there_are_cannot_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forms, "training_forms", lambda: ((Form("de", "long", "d. MMMM y"),),))
    monkeypatch.setattr(sampling, "days", lambda split: (date(1979, 5, 3), date(1979, 5, 4)))
    assert {example.source for example in draw(2, 1, "train")} == {"3. Mai 1979", "4. Mai 1979"}
    with pytest.raises(DataError, match="gave 2 different strings, not 3: ask for 2 or fewer"):
        draw(3, 1, "train")


def test_a_string_with_two_dates_is_an_error_that_shows_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    short = (Form("en", "month first", "M/d/y"), Form("en", "day first", "d/M/y"))
    monkeypatch.setattr(forms, "training_forms", lambda: (short,))
    monkeypatch.setattr(sampling, "days", lambda split: (date(1979, 5, 3), date(1979, 3, 5)))
    shown = r"'[35]/[35]/1979' has two dates: 1979-0[35]-0[35] \(en, (day|month) first\) and 1979"
    with pytest.raises(DataError, match=shown):
        draw(4, 1, "train")


def test_the_same_string_for_the_same_date_is_no_error() -> None:
    places = ((6, 10), (2, 5), (0, 1))
    sampling.check_unambiguous(
        Example("3 May 1979", "1979-05-03", language, "long", places) for language in ("en", "tr")
    )
