"""The forms in which each language writes a date, and how a date is written in one."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import cache

from regard.seq2seq.batch import Span
from regard.tasks.dates.example import Example
from regard.tasks.dates.languages import LANGUAGES, Language
from regard.tasks.dates.pieces import FieldName, Piece, field_value, format_piece, parse, pattern_of
from regard.tasks.dates.spelling import NativeDigits, Spelling, lowercase, plain

WIDTHS = ("full", "long", "medium")
"""Without CLDR's short forms: 3/5/79 is ambiguous."""

ORDERS = {
    "day first": ("day", "month", "year"),
    "month first": ("month", "day", "year"),
    "year first": ("year", "month", "day"),
}


@dataclass(frozen=True, slots=True)
class Form:
    """One way to write a date."""

    language: str
    name: str
    pattern: str
    """A CLDR date pattern."""

    spelling: Spelling = plain
    years_added: int = 0
    """How far its era is ahead."""


def compose(form: Form, day: date) -> Example:
    """Write a day in a form. Spans are measured on the final text."""
    texts: list[str] = []
    spans: dict[FieldName, Span] = {}
    length = 0
    for piece in parse(form.pattern):
        value = field_value(piece.part, day)
        if piece.part == "year":
            value += form.years_added
        text = _spell(form.language, piece, value, form.spelling)
        spans[piece.part] = (length, length + len(text))
        texts.append(text)
        length += len(text)
    parts = spans["year"], spans["month"], spans["day"]
    return Example("".join(texts), day.isoformat(), form.language, form.name, parts)


@cache
def _spell(code: str, piece: Piece, value: int, spelling: Spelling) -> str:
    return spelling(format_piece(code, piece, value))


@cache
def training_forms() -> tuple[tuple[Form, ...], ...]:
    """The forms of each language, for all three splits."""
    return tuple(forms_of(language) for language in LANGUAGES.values())


@cache
def held_out_forms() -> tuple[tuple[Form, ...], ...]:
    """Forms that are never trained on: the Buddhist era, 543 years ahead, and another language.

    Slovak's long form has no character that the forty languages lack, and no string in common with
    them. Its medium form is that of Czech.
    """
    eras = ("d MMMM 'พ.ศ.' y", "EEEEที่ d MMMM 'พ.ศ.' y")
    thai = tuple(Form("th", "Buddhist era", pattern, years_added=543) for pattern in eras)
    slovak = (Form("sk", "language left out", pattern_of("sk", "long")),)
    return thai, slovak


def forms_of(language: Language) -> tuple[Form, ...]:
    """The forms of a language, with every spelling that makes a difference."""
    forms: dict[str, Form] = {}
    for name, pattern in _patterns(language):
        # Chinese has the same pattern for long and medium.
        forms.setdefault(pattern, Form(language.code, name, pattern))
    return tuple(spelled for form in forms.values() for spelled in _spellings(form, language))


def _patterns(language: Language) -> Iterator[tuple[str, str]]:
    """Those of CLDR, then the orders that the language does not use."""
    for width in WIDTHS:
        yield width, pattern_of(language.code, width)
    chunks = {"day": language.day, "month": language.month, "year": language.year}
    usual = _order(pattern_of(language.code, "long"))
    for name, order in ORDERS.items():
        if order != usual:
            yield name, language.separator.join(chunks[part] for part in order)
    yield "weekday moved", _weekday_moved(language)


def _order(pattern: str) -> tuple[str, ...]:
    return tuple(piece.part for piece in parse(pattern) if piece.part in ("day", "month", "year"))


def _weekday_moved(language: Language) -> str:
    """With the weekday at the other end of the date than usual."""
    first = parse(pattern_of(language.code, "full"))[0]
    date_alone = pattern_of(language.code, "long")
    if first.part == "weekday":
        return f"{date_alone}{language.separator}{first.text}"
    return f"EEEE{language.separator}{date_alone}"


def _spellings(form: Form, language: Language) -> Iterator[Form]:
    yield form
    if any(plain(text) != lowercase(text) for text in _all_texts(form)):
        yield replace(form, name=f"{form.name}, lower-cased", spelling=lowercase)
    if language.zero:
        digits = NativeDigits(language.zero)
        yield replace(form, name=f"{form.name}, native digits", spelling=digits)


def _all_texts(form: Form) -> Iterator[str]:
    """Every piece of text without digits that a form may have."""
    values: dict[FieldName, range] = {"month": range(1, 13), "weekday": range(7)}
    for piece in parse(form.pattern):
        if piece.part not in ("year", "day"):
            for value in values.get(piece.part, range(1)):
                yield format_piece(form.language, piece, value)
