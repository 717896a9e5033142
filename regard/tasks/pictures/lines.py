"""Words in a terminal: by how many columns they fill, and whichever way they run."""

from rich.cells import cell_len

from regard.tasks.pictures.direction import right_to_left

ISOLATED, ENDED, TO_THE_RIGHT = "\u2068", "\u2069", "\u200e"
"""Signs of Unicode: they keep a terminal that turns Hebrew round from turning the whole line."""


def filled(text: str, width: int) -> str:
    """With spaces behind it; it fills so many columns."""
    return isolated(text) + " " * (width - cell_len(text))


def isolated(text: str) -> str:
    """So that what stands around it stays where it is; as it is if it runs to the right."""
    return f"{ISOLATED}{text}{ENDED}" if right_to_left([text]) else text


def line(*parts: str) -> str:
    """The parts one after the other, whichever way each of them runs."""
    whole = "".join(parts).rstrip()
    return f"{TO_THE_RIGHT}{whole}" if ISOLATED in whole else whole
