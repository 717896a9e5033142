"""Spellings of a piece of a date: cleaned, lower-cased, or in native digits."""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

Spelling = Callable[[str], str]

JOINERS = "\u200c\u200d"
"""Format characters that belong to the spelling: Persian's Tuesday has one."""


def plain(text: str) -> str:
    """As CLDR has it, without directional marks, with one kind of space, in NFC."""
    kept = (character for character in text if not _is_directional_mark(character))
    spaced = (" " if unicodedata.category(character) == "Zs" else character for character in kept)
    return unicodedata.normalize("NFC", "".join(spaced))


def lowercase(text: str) -> str:
    """In lower case.

    >>> lowercase("Mai")
    'mai'
    """
    return unicodedata.normalize("NFC", plain(text).lower())


@dataclass(frozen=True, slots=True)
class NativeDigits:
    """With other digits than 0 to 9.

    >>> NativeDigits("٠")("1979")
    '١٩٧٩'
    """

    zero: str

    def __call__(self, text: str) -> str:
        """The ten digits of a script follow each other in Unicode."""
        digits = {ord("0") + value: chr(ord(self.zero) + value) for value in range(10)}
        return plain(text).translate(digits)


def _is_directional_mark(character: str) -> bool:
    return unicodedata.category(character) == "Cf" and character not in JOINERS
