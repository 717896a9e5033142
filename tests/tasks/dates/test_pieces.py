"""Pieces that are written one by one make what babel writes at once, and are spelt as claimed."""

import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta

import pytest
from babel.dates import format_date

from regard.seq2seq.errors import DataError
from regard.tasks.dates.forms import WIDTHS, Form, compose, held_out_forms, training_forms
from regard.tasks.dates.languages import LANGUAGES
from regard.tasks.dates.pieces import parse
from regard.tasks.dates.spelling import NativeDigits, lowercase, plain

FORMS = [form for forms in training_forms() for form in forms]
EDGES = [date(1900, 1, 1), date(1999, 12, 31), date(2000, 2, 29), date(2099, 12, 31)]
# Steps of 379 days meet every month, day of a month and weekday; a law below holds them to it.
DAYS = [date(1900, 1, 5) + timedelta(379 * step) for step in range(192)] + EDGES
SCRIPTS = [
    "ARABIC", "ARMENIAN", "BENGALI", "CJK", "CYRILLIC", "DEVANAGARI",
    "GEORGIAN", "GREEK", "HANGUL", "HEBREW", "LATIN", "THAI",
]  # fmt: skip
NATIVE = {
    "ar": "٠١٢٣٤٥٦٧٨٩",
    "bn": "০১২৩৪৫৬৭৮৯",
    "fa": "۰۱۲۳۴۵۶۷۸۹",
    "hi": "०१२३४५६७८९",
    "th": "๐๑๒๓๔๕๖๗๘๙",
}


def texts(forms: list[Form]) -> Iterator[tuple[Form, str]]:
    for form in forms:
        for day in DAYS[::7]:
            yield form, compose(form, day).source


def test_the_days_tried_have_every_part_that_a_day_can_have() -> None:
    assert {day.month for day in DAYS} == set(range(1, 13))
    assert {day.day for day in DAYS} == set(range(1, 32))
    assert {day.weekday() for day in DAYS} == set(range(7))


@pytest.mark.parametrize("code", LANGUAGES)
def test_pieces_joined_are_what_babel_writes_at_once(code: str, unchecked: None) -> None:
    forms = [form for form in FORMS if form.language == code and form.spelling is plain]
    for form in forms:
        asked = form.name if form.name in WIDTHS else form.pattern
        raw = replace(form, spelling=str)
        for day in DAYS:
            assert compose(raw, day).source == format_date(day, asked, locale=code), form


def test_a_language_left_out_is_written_as_babel_writes_it() -> None:
    (slovak,) = (form for forms in held_out_forms() for form in forms if form.language == "sk")
    for day in DAYS:
        assert compose(slovak, day).source == format_date(day, "long", locale="sk")


def test_every_language_has_full_long_medium_and_reordered_forms() -> None:
    for code in LANGUAGES:
        names = {form.name for form in FORMS if form.language == code}
        assert {"full", "long", "weekday moved"} <= names
        assert "medium" in names or code == "zh"
        assert len({"day first", "month first", "year first"} & names) >= 2


def test_there_are_forty_languages_and_the_scripts_asked_for() -> None:
    assert len(LANGUAGES) == 40
    characters = {character for _, text in texts(FORMS) for character in text}
    letters = {each for each in characters if unicodedata.category(each) in ("Ll", "Lo", "Lu")}
    scripts = {unicodedata.name(letter).split()[0].split("-")[0] for letter in letters}
    assert sorted(scripts) == SCRIPTS


def test_texts_are_clean(unchecked: None) -> None:
    for form, text in texts(FORMS + [form for forms in held_out_forms() for form in forms]):
        assert unicodedata.is_normalized("NFC", text), form
        kinds = {
            unicodedata.category(character) for character in text if character not in " \u200c"
        }
        assert kinds.isdisjoint({"Cf", "Cc", "Zs", "Zl", "Zp"}), form
        assert text == text.strip(), form
        assert "  " not in text, form


def test_the_joiner_of_persian_stays() -> None:
    assert plain("سه\u200cشنبه") == "سه\u200cشنبه"
    assert plain("03\u200f/05\u202f'\u00a0e\u0301") == "03/05 ' é"


def test_lower_cased_forms_are(unchecked: None) -> None:
    cased = [form for form in FORMS if form.spelling is lowercase]
    assert {"de", "el", "en", "tr"} <= {form.language for form in cased}
    for form, text in texts(cased):
        assert text == text.lower(), form
    for form in cased:
        before = replace(form, spelling=plain)
        assert any(compose(before, day).source != compose(form, day).source for day in DAYS)


def test_five_languages_have_their_own_digits(unchecked: None) -> None:
    native = [form for form in FORMS if isinstance(form.spelling, NativeDigits)]
    assert {form.language for form in native} == set(NATIVE)
    for form, text in texts(native):
        digits = {character for character in text if character.isdecimal()}
        assert digits <= set(NATIVE[form.language]), form
        assert form.name.endswith("native digits")


def test_a_field_that_is_no_part_of_a_date_is_named() -> None:
    with pytest.raises(DataError, match="'HH', which is no part of a date"):
        parse("d MMMM y HH")


def test_without_babel_the_error_names_the_extra() -> None:
    script = (
        "import sys; sys.modules['babel'] = None\n"
        "from regard.tasks import dates\n"
        "try: dates.draw(1, 1, 'train')\n"
        "except ValueError as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.endswith("Install it: pip install 'regard[demo]'\n")
