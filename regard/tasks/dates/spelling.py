"""How a piece of a date is spelt: cleaned, and then lower-cased or in the language's own digits."""

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

Spelling = Callable[[str], str]

JOINERS = "\u200c\u200d"
"""Format characters too, but they belong to the spelling: Persian's Tuesday has one."""


def plain(text: str) -> str:
    """As CLDR has it, without marks of direction, with one kind of space, composed (NFC)."""
    kept = (character for character in text if not _unseen(character))
    spaced = (" " if unicodedata.category(character) == "Zs" else character for character in kept)
    return unicodedata.normalize("NFC", "".join(spaced))


def lowered(text: str) -> str:
    """All in small letters.

    >>> lowered("Mai")
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


def _unseen(character: str) -> bool:
    return unicodedata.category(character) == "Cf" and character not in JOINERS
