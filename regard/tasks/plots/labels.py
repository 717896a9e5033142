"""How words are shown to people: made visible, cut where they are too long."""

import unicodedata

from rich.cells import cell_len

from regard.seq2seq.system.escaping import CONTROL

END = "∎"
"""How the end of a source is shown."""

JOINER = "\u200d"


def shown(token: str) -> str:
    r"""The token; a sign for one that is no text, and for what cannot be seen.

    >>> shown(""), shown("a\tb"), shown("\u202ec")
    ('∎', 'a·b', '·c')
    """
    return unicodedata.normalize("NFC", CONTROL.sub("·", token)) or END


def shortened(text: str, most: int) -> str:
    """The text, if need be cut to so many columns of a terminal, in which 日 fills two.

    >>> shortened("Donaudampfschiff", 8), shortened("日本語", 5)
    ('Donauda…', '日本…')
    """
    if cell_len(text) <= most:
        return text
    kept, width = "", 1
    for character in characters(text):
        width += cell_len(character)
        if width > most:
            break
        kept += character
    return f"{kept}…"


def characters(text: str) -> list[str]:
    """What people call characters: a letter and the marks on it are one.

    >>> len(characters("नमस्ते")), len("नमस्ते")
    (4, 6)
    """
    found: list[str] = []
    for character in text:
        if found and (_is_mark(character) or found[-1].endswith(JOINER)):
            found[-1] += character
        else:
            found.append(character)
    return found


def _is_mark(character: str) -> bool:
    return unicodedata.category(character) in ("Mn", "Mc", "Me") or character == JOINER
