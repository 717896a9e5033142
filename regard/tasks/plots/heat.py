"""Attention weights as heat maps: one, or several side by side."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from regard.tasks.plots.bidi import visual_order
from regard.tasks.plots.canvas import GREY, Canvas, shades
from regard.tasks.plots.labels import shortened, shown

LONGEST = 24
"""How many columns of a word are written."""

TILTED = 45
GAP = 0.3


@dataclass(frozen=True, slots=True)
class Panel:
    """One heat map."""

    source: Sequence[str]
    target: Sequence[str]
    weights: Float[Tensor, "target source"]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Grain:
    """How large a cell is, in inches, and a letter, in points."""

    cell: float
    letter: float

    @classmethod
    def of(cls, panels: Sequence[Panel]) -> "Grain":
        """The more there is, the smaller; tilted words never touch their neighbours."""
        most = max(max(len(panel.source), len(panel.target)) for panel in panels)
        if len(panels) == 1:
            return cls(0.28, 10) if most <= 25 else cls(0.2, 8)
        return cls(0.2, 8) if most <= 25 else cls(0.15, 6.5)


class Heat:
    """Heat maps in rows and columns.

    Args:
        rows: The panels as they stand.
        legend: What is drawn; written above.
        alike: Do all have the same words? Then only the outer ones are labelled.
    """

    def __init__(self, rows: Sequence[Sequence[Panel]], legend: str, alike: bool) -> None:
        self._rows, self._legend, self._alike = rows, legend, alike
        panels = [panel for row in rows for panel in row]
        self._grain = Grain.of(panels)
        texts = [self._label(word) for panel in panels for word in (*panel.source, *panel.target)]
        self._sheet = Canvas([*texts, *(panel.title for panel in panels), legend])

    def draw(self) -> Canvas:
        """The sheet with everything on it."""
        bottom, right = 0.0, 3.0
        for number, row in enumerate(self._rows):
            left, labelled = 0.0, number == 0 or not self._alike
            top = bottom + max(self._above(panel, labelled) for panel in row)
            for place, panel in enumerate(row):
                if place == 0 or not self._alike:
                    left += self._beside(panel)
                right = max(right, self._panel(panel, left, top, labelled, place == 0))
                left += self._width(panel) + self._overhang(panel) + GAP
            bottom = top + max(len(panel.target) for panel in row) * self._grain.cell + GAP
        self._sheet.head(self._legend, right)
        self._scale(bottom)
        return self._sheet

    def _panel(self, panel: Panel, left: float, top: float, above: bool, beside: bool) -> float:
        """Draws one; where it ends."""
        cell, letter = self._grain.cell, self._grain.letter
        order = visual_order(panel.source)
        width, height = self._width(panel), len(panel.target) * cell
        axes = self._sheet.axes(left, top, width, height)
        rows = panel.weights[:, order].tolist()
        axes.pcolormesh(rows, cmap=shades(), vmin=0, vmax=1, edgecolors="white", linewidth=0.5)
        axes.invert_yaxis()
        for place, number in enumerate(order if above else ()):
            self._column(left + (place + 0.5) * cell, top, self._label(panel.source[number]), panel)
        for place, word in enumerate(panel.target if beside or not self._alike else ()):
            self._sheet.write(
                left - 0.06, top + (place + 0.5) * cell, self._label(word), letter,
                ha="right", va="center_baseline",
            )  # fmt: skip
        if panel.title:
            self._sheet.write(
                left, top - self._above(panel, above) + 0.2, panel.title, letter + 1, color=GREY
            )
        return left + width

    def _column(self, middle: float, top: float, label: str, panel: Panel) -> None:
        letter = self._grain.letter
        if self._upright(panel):
            self._sheet.write(middle, top - 0.05, label, letter, ha="center", va="bottom")
            return
        self._sheet.write(
            middle + letter / 200, top - 0.06, label, letter,
            ha="left", va="baseline", rotation=TILTED, rotation_mode="anchor",
        )  # fmt: skip

    def _label(self, word: str) -> str:
        return shortened(shown(word), LONGEST)

    def _upright(self, panel: Panel) -> bool:
        """Is every source word narrow enough to stand above its cell?"""
        return all(self._wide(word) < self._grain.cell - 0.01 for word in panel.source)

    def _wide(self, word: str) -> float:
        return self._sheet.measure(self._label(word), self._grain.letter)

    def _width(self, panel: Panel) -> float:
        return len(panel.source) * self._grain.cell

    def _above(self, panel: Panel, labelled: bool) -> float:
        """What stands above the cells: the title, and the words if they do."""
        title = 0.3 if panel.title else 0.1
        if not labelled:
            return title
        if self._upright(panel):
            return title + 0.2
        longest = max(self._wide(word) for word in panel.source)
        return title + longest * math.sin(math.radians(TILTED)) + 0.2

    def _beside(self, panel: Panel) -> float:
        return max(self._wide(word) for word in panel.target) + 0.1

    def _overhang(self, panel: Panel) -> float:
        """How far tilted words reach beyond the cells to the right."""
        if self._upright(panel):
            return 0.0
        slope, cell, width = math.cos(math.radians(TILTED)), self._grain.cell, self._width(panel)
        ends = (
            (place + 0.5) * cell + slope * self._wide(panel.source[number])
            for place, number in enumerate(visual_order(panel.source))
        )
        return max(0.0, max(ends) - width)

    def _scale(self, top: float) -> None:
        """What the shades mean."""
        axes = self._sheet.axes(0, top, 1.5, 0.12)
        axes.pcolormesh([[n / 60 for n in range(61)]], cmap=shades(), vmin=0, vmax=1)
        for share in (0, 0.5, 1):
            self._sheet.write(1.5 * share, top + 0.16, f"{share:g}", 8, ha="center", va="top")
        self._sheet.write(1.65, top + 0.11, "share of the reading", 8)
