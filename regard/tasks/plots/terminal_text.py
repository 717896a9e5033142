"""Text in a terminal: padded by columns, and isolated where it runs from right to left."""

from rich.cells import cell_len

from regard.seq2seq.system.escaping import ENDED, ISOLATE, spelled_out
from regard.tasks.plots.bidi import right_to_left

LEFT_TO_RIGHT_MARK = "\u200e"
"""Keeps a terminal with bidirectional text from reversing the line; so do isolates."""


def pad_columns(text: str, width: int) -> str:
    """The text with spaces after it, in so many columns."""
    return isolate(text) + " " * (width - cell_len(text))


def isolate(text: str) -> str:
    """The text without control characters, so that the text around it keeps its order."""
    safe = spelled_out(text)
    return f"{ISOLATE}{safe}{ENDED}" if right_to_left([text]) else safe


def join_line(*parts: str) -> str:
    """The parts from left to right, whatever their directions."""
    line = "".join(parts).rstrip()
    return f"{LEFT_TO_RIGHT_MARK}{line}" if ISOLATE in line else line
