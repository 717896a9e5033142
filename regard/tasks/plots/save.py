"""Pictures as files: PNG or SVG, by matplotlib."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from regard.seq2seq.errors import ConfigError
from regard.tasks.plots.arcs import Arcs
from regard.tasks.plots.attention_map import AttentionMap
from regard.tasks.plots.canvas import Canvas
from regard.tasks.plots.heat import Heat, Panel

THRESHOLD = 0.2
"""Weights above it are worth a line, unless told otherwise."""


def save_picture(
    path: Path, looked: AttentionMap, view: str = "heat", threshold: float = THRESHOLD
) -> str:
    """One picture, as PNG or SVG by the path's ending; which letters no font has, for people.

    Args:
        path: Where to.
        looked: What is drawn.
        view: "heat" or "arcs" of the first reading, or "heads": a small heat map of each.
        threshold: For which weights there are arcs.

    Returns:
        A line to tell; nothing if every letter could be drawn.
    """
    if view not in VIEWS:
        raise ConfigError(f"the view is {view!r}. Choose {', '.join(VIEWS)}.")
    return _saved(path, VIEWS[view](looked, threshold))


def save_one_below_the_other(path: Path, found: Sequence[AttentionMap], legend: str) -> str:
    """A heat map of each, with its title above it; saved and told of as by `save_picture`."""
    rows = [[Panel(each.source, each.target, each.first, each.title)] for each in found]
    return _saved(path, Heat(rows, legend, alike=False).draw())


def _saved(path: Path, sheet: Canvas) -> str:
    sheet.save(path)
    return sheet.note


def _heat(looked: AttentionMap, _: float) -> Canvas:
    panel = Panel(looked.source, looked.target, looked.first)
    return Heat([[panel]], looked.drawn, alike=True).draw()


def _arcs(looked: AttentionMap, threshold: float) -> Canvas:
    return Arcs(looked, threshold).draw()


def _heads(looked: AttentionMap, _: float) -> Canvas:
    panels = [
        Panel(looked.source, looked.target, weights, name) for name, weights in looked.maps.items()
    ]
    # Wide ones stand below one another, tall ones side by side: the whole is about square.
    square = math.sqrt(len(panels) * (len(looked.target) + 3) / (len(looked.source) + 1))
    columns = min(len(panels), max(1, round(square)))
    rows = [panels[first : first + columns] for first in range(0, len(panels), columns)]
    return Heat(rows, f"Read {looked.legend}", alike=True).draw()


VIEWS: Mapping[str, Callable[[AttentionMap, float], Canvas]] = {
    "heat": _heat, "arcs": _arcs, "heads": _heads,
}  # fmt: skip
