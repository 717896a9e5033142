"""The forms in which each language writes a date, and how one is composed."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from functools import cache

from regard.seq2seq.batch import Span
from regard.tasks.dates.example import Example
from regard.tasks.dates.languages import LANGUAGES, Language
from regard.tasks.dates.pieces import Part, Piece, number, parse, pattern_of, written
from regard.tasks.dates.spelling import NativeDigits, Spelling, lowered, plain

WIDTHS = ("full", "long", "medium")
"""What CLDR calls short is left out: 3/5/79 is two dates."""

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
    """CLDR's, or one of our own in the same letters."""

    spelling: Spelling = plain
    years_added: int = 0
    """By how much its years are ahead of ours."""


def compose(form: Form, day: date) -> Example:
    """Write a day in a form. Where its parts lie is measured last, on what is really there."""
    texts: list[str] = []
    places: dict[Part, Span] = {}
    length = 0
    for piece in parse(form.pattern):
        value = number(piece.part, day)
        if piece.part == "year":
            value += form.years_added
        text = _spelt(form.language, piece, value, form.spelling)
        places[piece.part] = (length, length + len(text))
        texts.append(text)
        length += len(text)
    parts = places["year"], places["month"], places["day"]
    return Example("".join(texts), day.isoformat(), form.language, form.name, parts)


@cache
def _spelt(code: str, piece: Piece, value: int, spelling: Spelling) -> str:
    return spelling(written(code, piece, value))


@cache
def trained() -> tuple[tuple[Form, ...], ...]:
    """All that is drawn for training and for tests: for each language its forms."""
    return tuple(forms_of(language) for language in LANGUAGES.values())


@cache
def held_out() -> tuple[tuple[Form, ...], ...]:
    """What is never trained on: years of the Buddhist era, 543 ahead, and a language left out.

    Slovak's long form has no character that the forty languages lack, and no string of theirs. Its
    medium form is that of Czech.
    """
    eras = ("d MMMM 'พ.ศ.' y", "EEEEที่ d MMMM 'พ.ศ.' y")
    thai = tuple(Form("th", "Buddhist era", pattern, years_added=543) for pattern in eras)
    slovak = (Form("sk", "language left out", pattern_of("sk", "long")),)
    return thai, slovak


def forms_of(language: Language) -> tuple[Form, ...]:
    """The forms of a language, each as it is and spelt otherwise where that makes a difference."""
    forms: dict[str, Form] = {}
    for name, pattern in _patterns(language):
        # Chinese has the same pattern for long and medium.
        forms.setdefault(pattern, Form(language.code, name, pattern))
    return tuple(spelt for form in forms.values() for spelt in _spellings(form, language))


def _patterns(language: Language) -> Iterator[tuple[str, str]]:
    """Those of CLDR, then those in another order than its own."""
    for width in WIDTHS:
        yield width, pattern_of(language.code, width)
    chunks = {"day": language.day, "month": language.month, "year": language.year}
    own = _order(pattern_of(language.code, "long"))
    for name, order in ORDERS.items():
        if order != own:
            yield name, language.between.join(chunks[part] for part in order)
    yield "weekday moved", _weekday_moved(language)


def _order(pattern: str) -> tuple[str, ...]:
    return tuple(piece.part for piece in parse(pattern) if piece.part in ("day", "month", "year"))


def _weekday_moved(language: Language) -> str:
    """The weekday at the other end of the date than is usual."""
    first = parse(pattern_of(language.code, "full"))[0]
    date_alone = pattern_of(language.code, "long")
    if first.part == "weekday":
        return f"{date_alone}{language.between}{first.text}"
    return f"EEEE{language.between}{date_alone}"


def _spellings(form: Form, language: Language) -> Iterator[Form]:
    yield form
    if any(plain(text) != lowered(text) for text in _all_texts(form)):
        yield replace(form, name=f"{form.name}, lower-cased", spelling=lowered)
    if language.zero:
        digits = NativeDigits(language.zero)
        yield replace(form, name=f"{form.name}, native digits", spelling=digits)


def _all_texts(form: Form) -> Iterator[str]:
    """Every text without digits that a form may have."""
    values: dict[Part, range] = {"month": range(1, 13), "weekday": range(7)}
    for piece in parse(form.pattern):
        if piece.part not in ("year", "day"):
            for value in values.get(piece.part, range(1)):
                yield written(form.language, piece, value)
