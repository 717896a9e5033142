"""Attention weights as lines between two texts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regard.tasks.plots.attention_map import AttentionMap
from regard.tasks.plots.bidi import visual_order
from regard.tasks.plots.canvas import DARK, GREY, Canvas
from regard.tasks.plots.labels import shortened, shown

if TYPE_CHECKING:
    from matplotlib.path import Path as Outline

LONGEST = 24
WIDEST = 12.0
"""How long a line of words may be, in inches; longer ones stand as columns, a word a line."""

LETTER, GAP, PITCH = 11, 0.14, 0.22
BETWEEN_LINES, BETWEEN_COLUMNS = 1.1, 2.2

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Word:
    """A word as it is written, and where lines begin or end at it."""

    text: str
    x: float
    y: float
    side: str
    """Which edge of the word is there: left, center, right."""

    end: Point


class Arcs:
    """Two texts and lines between their words.

    Args:
        looked: What is drawn, the first reading of it.
        threshold: Lines are for weights above it.
    """

    def __init__(self, looked: AttentionMap, threshold: float) -> None:
        self._looked, self._threshold = looked, threshold
        self._source, self._target = (
            [shortened(shown(word), LONGEST) for word in words]
            for words in (looked.source, looked.target)
        )
        self._sheet = Canvas([*self._source, *self._target, looked.drawn])

    def draw(self) -> Canvas:
        """The sheet with everything on it."""
        widest = max(self._long(self._source), self._long(self._target))
        lying = widest <= WIDEST
        source, target = self._lines(widest) if lying else self._columns()
        links = [
            (weight, row, column)
            for row, weights in enumerate(self._looked.first.tolist())
            for column, weight in enumerate(weights)
            if weight > self._threshold
        ]
        for weight, row, column in sorted(links):
            self._line(source[column].end, target[row].end, weight, lying)
        for words, linked in (
            (source, {column for _, _, column in links}),
            (target, {row for _, row, _ in links}),
        ):
            for place, word in enumerate(words):
                self._write(word, place in linked)
        width, bottom = self._size(source, target, lying)
        self._sheet.head(self._looked.drawn, width)
        self._scale(bottom + 0.45)
        return self._sheet

    def _wide(self, word: str) -> float:
        return self._sheet.measure(word, LETTER)

    def _long(self, words: Sequence[str]) -> float:
        return sum(self._wide(word) + GAP for word in words)

    def _lines(self, width: float) -> tuple[list[Word], list[Word]]:
        """One text above the other, both in the middle."""

        def placed(words: Sequence[str], given: Sequence[str], y: float, end: float) -> list[Word]:
            found: dict[int, Word] = {}
            x = (width - self._long(words)) / 2
            for place in visual_order(given):
                middle = x + self._wide(words[place]) / 2
                found[place] = Word(words[place], middle, y, "center", (middle, end))
                x += self._wide(words[place]) + GAP
            return [found[place] for place in range(len(words))]

        top, bottom = 0.4, 0.4 + BETWEEN_LINES
        return (
            placed(self._source, self._looked.source, top, top + 0.12),
            placed(self._target, self._looked.target, bottom, bottom - 0.16),
        )

    def _columns(self) -> tuple[list[Word], list[Word]]:
        """One text beside the other, a word a line."""
        left = max(self._wide(word) for word in self._source)
        right = left + BETWEEN_COLUMNS
        most = max(len(self._source), len(self._target))

        def rows(words: Sequence[str]) -> Iterator[tuple[str, float]]:
            first = 0.4 + (most - len(words)) * PITCH / 2
            return ((word, first + place * PITCH) for place, word in enumerate(words))

        return (
            [Word(w, left, y, "right", (left + 0.06, y - 0.05)) for w, y in rows(self._source)],
            [Word(w, right, y, "left", (right - 0.06, y - 0.05)) for w, y in rows(self._target)],
        )

    def _write(self, word: Word, linked: bool) -> None:
        self._sheet.write(
            word.x, word.y, word.text, LETTER,
            ha=word.side, va="baseline", color="black" if linked else GREY,
        )  # fmt: skip

    def _line(self, start: Point, end: Point, weight: float, lying: bool) -> None:
        from matplotlib.patches import PathPatch  # noqa: PLC0415  # slow to import

        self._sheet.figure.add_artist(
            PathPatch(
                _curve(start, end, lying), fill=False, edgecolor=DARK, capstyle="round",
                linewidth=_thickness(weight), alpha=_strength(weight), clip_on=False,
                transform=self._sheet.figure.transFigure,
            )
        )  # fmt: skip

    def _size(
        self, source: Sequence[Word], target: Sequence[Word], lying: bool
    ) -> tuple[float, float]:
        """Where everything ends."""
        words = [*source, *target]
        right = max(word.x + self._wide(word.text) / (2 if lying else 1) for word in words)
        return max(3.0, right), max(word.y for word in words)

    def _scale(self, y: float) -> None:
        """What the lines mean."""
        for place, weight in enumerate((0.25, 0.5, 1.0)):
            x = 0.75 * place
            self._line((x, y), (x + 0.3, y), weight, lying=False)
            self._sheet.write(x + 0.36, y + 0.04, f"{weight:g}", 8)
        told = f"share of the reading; lines above {self._threshold:g}"
        self._sheet.write(2.25, y + 0.04, told, 8)


def _thickness(weight: float) -> float:
    return 0.6 + 3 * weight


def _strength(weight: float) -> float:
    return min(1.0, 0.25 + 0.75 * weight)


def _curve(start: Point, end: Point, lying: bool) -> "Outline":
    """From one end to the other, leaving each at a right angle to its text."""
    from matplotlib.path import Path as Outline  # noqa: PLC0415

    (x, y), (u, v) = start, end
    middle = [(x, (y + v) / 2), (u, (y + v) / 2)] if lying else [((x + u) / 2, y), ((x + u) / 2, v)]
    points = [(a, -b) for a, b in (start, *middle, end)]
    return Outline(points, [Outline.MOVETO, *[Outline.CURVE4] * 3])
