"""Attention weights as heat maps: one, or several side by side."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from regard.tasks.plots.bidi import visual_order
from regard.tasks.plots.canvas import GREY, Canvas, color_map
from regard.tasks.plots.labels import truncate, visible

MAX_LABEL = 24
"""In columns of a terminal; longer labels are truncated."""

TILT = 45
"""Degrees, of labels that are wider than their cells."""

GAP = 0.3


@dataclass(frozen=True, slots=True)
class Panel:
    """One heat map."""

    source: Sequence[str]
    target: Sequence[str]
    weights: Float[Tensor, "target source"]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Scale:
    """The size of a cell, in inches, and of the font, in points."""

    cell: float
    font: float

    @classmethod
    def of(cls, panels: Sequence[Panel]) -> "Scale":
        """The more cells, the smaller; tilted labels never overlap."""
        most = max(max(len(panel.source), len(panel.target)) for panel in panels)
        if len(panels) == 1:
            return cls(0.28, 10) if most <= 25 else cls(0.2, 8)
        return cls(0.2, 8) if most <= 25 else cls(0.15, 6.5)


class Heatmap:
    """Heat maps in rows and columns.

    Args:
        rows: The panels of each row.
        caption: Written above.
        shared_labels: Do all have the same words? Then only the outer ones are labelled.
    """

    def __init__(self, rows: Sequence[Sequence[Panel]], caption: str, shared_labels: bool) -> None:
        self._rows, self._caption, self._shared_labels = rows, caption, shared_labels
        panels = [panel for row in rows for panel in row]
        self._size = Scale.of(panels)
        texts = [self._label(word) for panel in panels for word in (*panel.source, *panel.target)]
        self._canvas = Canvas([*texts, *(panel.title for panel in panels), caption])

    def draw(self) -> Canvas:
        """The canvas with everything on it."""
        bottom, right = 0.0, 3.0
        for number, row in enumerate(self._rows):
            left, labelled = 0.0, number == 0 or not self._shared_labels
            top = bottom + max(self._above(panel, labelled) for panel in row)
            for place, panel in enumerate(row):
                if place == 0 or not self._shared_labels:
                    left += self._beside(panel)
                right = max(right, self._panel(panel, left, top, labelled, place == 0))
                left += self._width(panel) + self._overhang(panel) + GAP
            bottom = top + max(len(panel.target) for panel in row) * self._size.cell + GAP
        self._canvas.caption(self._caption, right)
        self._color_bar(bottom)
        return self._canvas

    def _panel(self, panel: Panel, left: float, top: float, above: bool, beside: bool) -> float:
        """Draw one; returns its right edge."""
        cell, font = self._size.cell, self._size.font
        order = visual_order(panel.source)
        width, height = self._width(panel), len(panel.target) * cell
        axes = self._canvas.axes(left, top, width, height)
        rows = panel.weights[:, order].tolist()
        axes.pcolormesh(rows, cmap=color_map(), vmin=0, vmax=1, edgecolors="white", linewidth=0.5)
        axes.invert_yaxis()
        for place, number in enumerate(order if above else ()):
            self._column(left + (place + 0.5) * cell, top, self._label(panel.source[number]), panel)
        for place, word in enumerate(panel.target if beside or not self._shared_labels else ()):
            self._canvas.write(
                left - 0.06, top + (place + 0.5) * cell, self._label(word), font,
                ha="right", va="center_baseline",
            )  # fmt: skip
        if panel.title:
            self._canvas.write(
                left, top - self._above(panel, above) + 0.2, panel.title, font + 1, color=GREY
            )
        return left + width

    def _column(self, middle: float, top: float, label: str, panel: Panel) -> None:
        font = self._size.font
        if self._upright(panel):
            self._canvas.write(middle, top - 0.05, label, font, ha="center", va="bottom")
            return
        self._canvas.write(
            middle + font / 200, top - 0.06, label, font,
            ha="left", va="baseline", rotation=TILT, rotation_mode="anchor",
        )  # fmt: skip

    def _label(self, word: str) -> str:
        return truncate(visible(word), MAX_LABEL)

    def _upright(self, panel: Panel) -> bool:
        """Is every source word narrower than its cell, so that it need not be tilted?"""
        return all(self._label_width(word) < self._size.cell - 0.01 for word in panel.source)

    def _label_width(self, word: str) -> float:
        return self._canvas.measure(self._label(word), self._size.font)

    def _width(self, panel: Panel) -> float:
        return len(panel.source) * self._size.cell

    def _above(self, panel: Panel, labelled: bool) -> float:
        """The height above the cells: of the title, and of the labels if any."""
        title = 0.3 if panel.title else 0.1
        if not labelled:
            return title
        if self._upright(panel):
            return title + 0.2
        longest = max(self._label_width(word) for word in panel.source)
        return title + longest * math.sin(math.radians(TILT)) + 0.2

    def _beside(self, panel: Panel) -> float:
        return max(self._label_width(word) for word in panel.target) + 0.1

    def _overhang(self, panel: Panel) -> float:
        """How far tilted labels reach beyond the cells to the right."""
        if self._upright(panel):
            return 0.0
        slope, cell, width = math.cos(math.radians(TILT)), self._size.cell, self._width(panel)
        ends = (
            (place + 0.5) * cell + slope * self._label_width(panel.source[number])
            for place, number in enumerate(visual_order(panel.source))
        )
        return max(0.0, max(ends) - width)

    def _color_bar(self, top: float) -> None:
        """The scale of the colours."""
        axes = self._canvas.axes(0, top, 1.5, 0.12)
        # An image: side by side, the cells of a mesh have seams in vector graphics.
        shades = [[n / 255 for n in range(256)]]
        axes.imshow(shades, cmap=color_map(), vmin=0, vmax=1, aspect="auto")
        for weight in (0, 0.5, 1):
            self._canvas.write(1.5 * weight, top + 0.16, f"{weight:g}", 8, ha="center", va="top")
        self._canvas.write(1.65, top + 0.11, "attention weight", 8)
