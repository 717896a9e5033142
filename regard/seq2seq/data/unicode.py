"""Text before tokenizing: control characters, normalisation to NFC."""

import re
import unicodedata

from regard.seq2seq.batch import Span

CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
"""Characters that end a line or move a terminal's cursor; a tab does neither."""


def spaced(text: str) -> str:
    r"""The text with a space for each control character: a text is one line.

    >>> spaced("a\u2028b\tc")
    'a b\tc'
    """
    return CONTROL.sub(" ", text)


def nfc_with_offsets(text: str) -> tuple[str, list[Span] | None]:
    r"""The text in NFC, and for each of its characters its span in the original.

    The spans are None if the text is unchanged, as most are.

    >>> nfc_with_offsets("e\u0301t")
    ('ét', [(0, 2), (2, 3)])
    """
    if unicodedata.is_normalized("NFC", text):
        return text, None
    composed: list[str] = []
    offsets: list[Span] = []
    for start, end in _groups(text):
        part = unicodedata.normalize("NFC", text[start:end])
        composed.append(part)
        # Inside a group characters are not one to one: each has the span of the group.
        offsets += [(start, end)] * len(part)
    return "".join(composed), offsets


def _groups(text: str) -> list[Span]:
    """Spans that can be composed one by one, with the result of composing the whole text."""
    groups: list[Span] = []
    start = 0
    for place in range(1, len(text) + 1):
        if place == len(text) or _separates(text[start:place], text[place]):
            groups.append((start, place))
            start = place
    return groups


def _separates(before: str, character: str) -> bool:
    """Does composing not cross from `before` to the character?"""
    if unicodedata.combining(unicodedata.normalize("NFD", character)[0]):
        return False
    together = unicodedata.normalize("NFC", before + character)
    separate = unicodedata.normalize("NFC", before) + unicodedata.normalize("NFC", character)
    return together == separate
