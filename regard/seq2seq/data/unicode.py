"""What is done to a text before it is cut: control characters, Unicode's composed form (NFC)."""

import re
import unicodedata

from regard.seq2seq.batch import Span

CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
"""What ends a line somewhere or moves a terminal's cursor; a tab does neither."""


def spaced(text: str) -> str:
    r"""The text with a space for each control character: a text is one line, and so is an answer.

    >>> spaced("a\u2028b\tc")
    'a b\tc'
    """
    return CONTROL.sub(" ", text)


def nfc_with_offsets(text: str) -> tuple[str, list[Span] | None]:
    r"""The text in NFC, and for each character of it where it comes from.

    None stands for "each from its own place", which is so for most texts.

    >>> nfc_with_offsets("e\u0301t")
    ('ét', [(0, 2), (2, 3)])
    """
    if unicodedata.is_normalized("NFC", text):
        return text, None
    made: list[str] = []
    places: list[Span] = []
    for start, end in _groups(text):
        part = unicodedata.normalize("NFC", text[start:end])
        made.append(part)
        # Inside a group nobody can say what became what: all of it is the place.
        places += [(start, end)] * len(part)
    return "".join(made), places


def _groups(text: str) -> list[Span]:
    """The text cut where composing it piece by piece gives the same as composing it whole."""
    groups: list[Span] = []
    start = 0
    for place in range(1, len(text) + 1):
        if place == len(text) or _parts(text[start:place], text[place]):
            groups.append((start, place))
            start = place
    return groups


def _parts(before: str, character: str) -> bool:
    """Does a character neither combine with what stands before it nor move into it?"""
    if unicodedata.combining(unicodedata.normalize("NFD", character)[0]):
        return False
    whole = unicodedata.normalize("NFC", before + character)
    apart = unicodedata.normalize("NFC", before) + unicodedata.normalize("NFC", character)
    return whole == apart
