"""Attention maps in a terminal, by block characters."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from regard.tasks.plots.attention_map import AttentionMap
from regard.tasks.plots.bidi import visual_order
from regard.tasks.plots.labels import graphemes, truncate, visible
from regard.tasks.plots.terminal_text import join_line, pad_columns

SHADES = " ░▒▓█"
"""From weight 0 to weight 1."""

SHADE_LEGEND = "░ from 13 %, ▒ from 38 %, ▓ from 63 %, █ from 88 %"

MAX_LABEL = 16
"""In columns; longer labels are truncated."""


@dataclass(frozen=True, slots=True)
class Column:
    """A source word: its label, line by line, and its width."""

    index: int
    lines: Sequence[str]
    width: int


def terminal_heatmap(attention: AttentionMap, width: int = 80) -> str:
    """A row for each word of the target, a column for each of the source.

    Where the labels are wider than this, they are written vertically; where even so the columns do
    not fit, the matrix continues below.

    >>> import torch
    >>> weights = torch.tensor([[0.2, 0.8]])
    >>> print(terminal_heatmap(AttentionMap("", "", ["a", "b"], ["b"], {"decoder": weights})))
      ab
    b ░▓
    """
    targets = [truncate(visible(word), MAX_LABEL) for word in attention.target]
    margin = max((cell_len(word) for word in targets), default=0) + 1
    columns, gap = _columns(attention.source, max(2, width - margin))
    weights = attention.first.tolist()
    lines = []
    for band in _bands(columns, gap, max(2, width - margin)):
        lines += ["", *_header(band, margin, gap)]
        for label, row in zip(targets, weights, strict=True):
            shades = (_shade(row[column.index]) * column.width for column in band)
            lines.append(join_line(pad_columns(label, margin), (" " * gap).join(shades)))
    return "\n".join(lines[1:])


def _shade(weight: float) -> str:
    return SHADES[round(min(1.0, max(0.0, weight)) * (len(SHADES) - 1))]


def _columns(source: Sequence[str], room: int) -> tuple[list[Column], int]:
    """With horizontal labels if they fit, else vertical ones; and the gap between columns."""
    labels = [truncate(visible(word), MAX_LABEL) for word in source]
    order = visual_order(source)
    gap = int(any(cell_len(label) > 1 for label in labels))
    if sum(cell_len(label) + gap for label in labels) - gap <= room:
        return [Column(n, [labels[n]], cell_len(labels[n])) for n in order], gap
    clusters = [graphemes(label) for label in labels]
    width = max(cell_len(character) for label in clusters for character in label)
    height = max(len(label) for label in clusters)
    vertical = [[""] * (height - len(label)) + label for label in clusters]
    return [Column(n, vertical[n], width) for n in order], 1


def _bands(columns: Sequence[Column], gap: int, room: int) -> Iterator[list[Column]]:
    """As many columns at a time as fit."""
    band: list[Column] = []
    used = 0
    for column in columns:
        if band and used + column.width > room:
            yield band
            band, used = [], 0
        band.append(column)
        used += column.width + gap
    yield band


def _header(band: Sequence[Column], margin: int, gap: int) -> Iterator[str]:
    for parts in zip(*(column.lines for column in band), strict=True):
        if not any(parts):
            continue  # the longest label is in another band
        cells = (
            pad_columns(part, column.width) + " " * gap
            for part, column in zip(parts, band, strict=True)
        )
        yield join_line(" " * margin, *cells)
