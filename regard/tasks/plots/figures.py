"""Attention maps as PNG, SVG or PDF files, by matplotlib."""

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from regard.seq2seq.errors import ConfigError
from regard.tasks.plots.arcs import Arcs
from regard.tasks.plots.attention_map import AttentionMap
from regard.tasks.plots.canvas import Canvas
from regard.tasks.plots.heatmap import Heatmap, Panel

THRESHOLD = 0.2
"""Arcs are for weights above it, unless another is given."""


def save_figure(
    path: Path, attention: AttentionMap, view: str = "heat", threshold: float = THRESHOLD
) -> str:
    """One figure, as PNG, SVG or PDF by the path's ending.

    Args:
        path: Where to.
        attention: What is drawn.
        view: "heat" or "arcs" of the first map, or "heads": a small heat map of each.
        threshold: Arcs are for weights above it.

    Returns:
        A note on the characters that no font has; empty if all could be drawn.
    """
    if view not in VIEWS:
        raise ConfigError(f"the view is {view!r}. Choose {', '.join(VIEWS)}.")
    return _save(path, VIEWS[view](attention, threshold))


def save_stacked(path: Path, maps: Sequence[AttentionMap], caption: str) -> str:
    """The first heat map of each, one below the other with their titles; see `save_figure`."""
    rows = [[Panel(each.source, each.target, each.first, each.title)] for each in maps]
    return _save(path, Heatmap(rows, caption, shared_labels=False).draw())


def _save(path: Path, canvas: Canvas) -> str:
    canvas.save(path)
    return canvas.note


def _heat(attention: AttentionMap, _: float) -> Canvas:
    panel = Panel(attention.source, attention.target, attention.first)
    return Heatmap([[panel]], attention.caption, shared_labels=True).draw()


def _arcs(attention: AttentionMap, threshold: float) -> Canvas:
    return Arcs(attention, threshold).draw()


def _heads(attention: AttentionMap, _: float) -> Canvas:
    source, target = attention.source, attention.target
    panels = [Panel(source, target, weights, name) for name, weights in attention.maps.items()]
    # Wide panels go below one another, tall ones side by side: the figure is about square.
    square = math.sqrt(len(panels) * (len(target) + 3) / (len(source) + 1))
    columns = min(len(panels), max(1, round(square)))
    rows = [panels[first : first + columns] for first in range(0, len(panels), columns)]
    return Heatmap(rows, f"Attention {attention.legend}", shared_labels=True).draw()


VIEWS: Mapping[str, Callable[[AttentionMap, float], Canvas]] = {
    "heat": _heat, "arcs": _arcs, "heads": _heads,
}  # fmt: skip
