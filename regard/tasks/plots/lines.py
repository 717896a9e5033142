"""Words in a terminal: by how many columns they fill, and whichever way they run."""

from rich.cells import cell_len

from regard.seq2seq.system.escaping import ENDED, ISOLATE, spelled_out
from regard.tasks.plots.bidi import right_to_left

TO_THE_RIGHT = "\u200e"
"""Keeps a terminal that turns Hebrew round from turning the whole line; so do isolates."""


def filled(text: str, width: int) -> str:
    """With spaces behind it; it fills so many columns."""
    return isolated(text) + " " * (width - cell_len(text))


def isolated(text: str) -> str:
    """So that what stands around it stays where it is, without any control character."""
    safe = spelled_out(text)
    return f"{ISOLATE}{safe}{ENDED}" if right_to_left([text]) else safe


def line(*parts: str) -> str:
    """The parts one after the other, whichever way each of them runs."""
    whole = "".join(parts).rstrip()
    return f"{TO_THE_RIGHT}{whole}" if ISOLATE in whole else whole
