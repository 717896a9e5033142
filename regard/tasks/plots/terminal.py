"""Attention weights in a terminal, by block characters."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from regard.tasks.plots.attention_map import AttentionMap
from regard.tasks.plots.bidi import visual_order
from regard.tasks.plots.labels import characters, shortened, shown
from regard.tasks.plots.lines import filled, line

SHADES = " ░▒▓█"
"""From nothing to all."""

SHADES_TOLD = "░ from 13 %, ▒ from 38 %, ▓ from 63 %, █ from 88 %"

LONGEST = 16
"""How much of a word is shown."""


@dataclass(frozen=True, slots=True)
class Column:
    """A source word: its lines above the matrix, and how wide it is."""

    place: int
    lines: Sequence[str]
    width: int


def as_blocks(looked: AttentionMap, width: int = 80) -> str:
    """A row for each word of the target, a column for each of the source.

    Where words side by side are wider than this, they stand upright; where even so there is no
    room for all, the matrix goes on below.

    >>> import torch
    >>> weights = torch.tensor([[0.2, 0.8]])
    >>> print(as_blocks(AttentionMap("", "", ["a", "b"], ["b"], {"decoder": weights})))
      ab
    b ░▓
    """
    targets = [shortened(shown(word), LONGEST) for word in looked.target]
    margin = max((cell_len(word) for word in targets), default=0) + 1
    columns, gap = _columns(looked.source, max(2, width - margin))
    weights = looked.first.tolist()
    lines = []
    for band in _bands(columns, gap, max(2, width - margin)):
        lines += ["", *_header(band, margin, gap)]
        for label, row in zip(targets, weights, strict=True):
            shades = (_shade(row[column.place]) * column.width for column in band)
            lines.append(line(filled(label, margin), (" " * gap).join(shades)))
    return "\n".join(lines[1:])


def _shade(weight: float) -> str:
    return SHADES[round(min(1.0, max(0.0, weight)) * (len(SHADES) - 1))]


def _columns(source: Sequence[str], room: int) -> tuple[list[Column], int]:
    """Side by side if there is room, else upright; and how much is left between them."""
    labels = [shortened(shown(word), LONGEST) for word in source]
    order = visual_order(source)
    gap = int(any(cell_len(label) > 1 for label in labels))
    if sum(cell_len(label) + gap for label in labels) - gap <= room:
        return [Column(n, [labels[n]], cell_len(labels[n])) for n in order], gap
    letters = [characters(label) for label in labels]
    width = max(cell_len(letter) for word in letters for letter in word)
    tallest = max(len(word) for word in letters)
    standing = [[""] * (tallest - len(word)) + word for word in letters]
    return [Column(n, standing[n], width) for n in order], 1


def _bands(columns: Sequence[Column], gap: int, room: int) -> Iterator[list[Column]]:
    """As many columns at a time as there is room for."""
    band: list[Column] = []
    taken = 0
    for column in columns:
        if band and taken + column.width > room:
            yield band
            band, taken = [], 0
        band.append(column)
        taken += column.width + gap
    yield band


def _header(band: Sequence[Column], margin: int, gap: int) -> Iterator[str]:
    for parts in zip(*(column.lines for column in band), strict=True):
        if not any(parts):
            continue  # the longest word stands in another band
        cells = (
            filled(part, column.width) + " " * gap for part, column in zip(parts, band, strict=True)
        )
        yield line(" " * margin, *cells)
