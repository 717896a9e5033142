"""Labels for people: made visible, and truncated where they are too long."""

import unicodedata

from rich.cells import cell_len

from regard.seq2seq.system.escaping import CONTROL

EOS_LABEL = "∎"

JOINER = "\u200d"


def visible(token: str) -> str:
    r"""The token with a dot for each control character; a sign for an empty one, EOS.

    >>> visible(""), visible("a\tb"), visible("\u202ec")
    ('∎', 'a·b', '·c')
    """
    return unicodedata.normalize("NFC", CONTROL.sub("·", token)) or EOS_LABEL


def truncate(text: str, most: int) -> str:
    """The text in at most so many columns of a terminal, in which 日 fills two.

    >>> truncate("Donaudampfschiff", 8), truncate("日本語", 5)
    ('Donauda…', '日本…')
    """
    if cell_len(text) <= most:
        return text
    kept, width = "", 1
    for character in graphemes(text):
        width += cell_len(character)
        if width > most:
            break
        kept += character
    return f"{kept}…"


def graphemes(text: str) -> list[str]:
    """The user-perceived characters: a letter and its combining marks are one.

    >>> len(graphemes("नमस्ते")), len("नमस्ते")
    (4, 6)
    """
    clusters: list[str] = []
    for character in text:
        if clusters and (_is_mark(character) or clusters[-1].endswith(JOINER)):
            clusters[-1] += character
        else:
            clusters.append(character)
    return clusters


def _is_mark(character: str) -> bool:
    return unicodedata.category(character) in ("Mn", "Mc", "Me") or character == JOINER
