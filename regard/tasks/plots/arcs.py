"""Attention weights as arcs between two texts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from regard.tasks.plots.attention_map import AttentionMap
from regard.tasks.plots.bidi import visual_order
from regard.tasks.plots.canvas import DARK, GREY, Canvas
from regard.tasks.plots.labels import truncate, visible

if TYPE_CHECKING:
    from matplotlib.path import Path as Outline

MAX_LABEL = 24
MAX_WIDTH = 12.0
"""Of a text on one line, in inches; longer texts are columns, a word a line."""

FONT_SIZE, GAP, LINE_HEIGHT = 11, 0.14, 0.22
BETWEEN_LINES, BETWEEN_COLUMNS = 1.1, 2.2

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Word:
    """A word, its position, and where its arcs end."""

    text: str
    x: float
    y: float
    align: str
    """Its horizontal alignment: left, center, right."""

    end: Point


class Arcs:
    """Two texts and arcs between their words.

    Args:
        attention: What is drawn: its first map.
        threshold: Arcs are for weights above it.
    """

    def __init__(self, attention: AttentionMap, threshold: float) -> None:
        self._attention, self._threshold = attention, threshold
        self._source, self._target = (
            [truncate(visible(word), MAX_LABEL) for word in words]
            for words in (attention.source, attention.target)
        )
        self._canvas = Canvas([*self._source, *self._target, attention.caption])

    def draw(self) -> Canvas:
        """The canvas with everything on it."""
        widest = max(self._text_width(self._source), self._text_width(self._target))
        horizontal = widest <= MAX_WIDTH
        source, target = self._one_above_other(widest) if horizontal else self._side_by_side()
        links = [
            (weight, row, column)
            for row, weights in enumerate(self._attention.first.tolist())
            for column, weight in enumerate(weights)
            if weight > self._threshold
        ]
        for weight, row, column in sorted(links):
            self._arc(source[column].end, target[row].end, weight, horizontal)
        for words, linked in (
            (source, {column for _, _, column in links}),
            (target, {row for _, row, _ in links}),
        ):
            for number, word in enumerate(words):
                self._write(word, number in linked)
        width, bottom = self._size(source, target, horizontal)
        self._canvas.caption(self._attention.caption, width)
        self._key(bottom + 0.45)
        return self._canvas

    def _word_width(self, word: str) -> float:
        return self._canvas.measure(word, FONT_SIZE)

    def _text_width(self, words: Sequence[str]) -> float:
        return sum(self._word_width(word) + GAP for word in words)

    def _one_above_other(self, width: float) -> tuple[list[Word], list[Word]]:
        """One text above the other, both centred."""

        def place(
            words: Sequence[str], original: Sequence[str], y: float, end: float
        ) -> list[Word]:
            placed: dict[int, Word] = {}
            x = (width - self._text_width(words)) / 2
            for number in visual_order(original):
                middle = x + self._word_width(words[number]) / 2
                placed[number] = Word(words[number], middle, y, "center", (middle, end))
                x += self._word_width(words[number]) + GAP
            return [placed[number] for number in range(len(words))]

        top, bottom = 0.4, 0.4 + BETWEEN_LINES
        return (
            place(self._source, self._attention.source, top, top + 0.12),
            place(self._target, self._attention.target, bottom, bottom - 0.16),
        )

    def _side_by_side(self) -> tuple[list[Word], list[Word]]:
        """One text beside the other, a word a line."""
        left = max(self._word_width(word) for word in self._source)
        right = left + BETWEEN_COLUMNS
        most = max(len(self._source), len(self._target))

        def rows(words: Sequence[str]) -> Iterator[tuple[str, float]]:
            first = 0.4 + (most - len(words)) * LINE_HEIGHT / 2
            return ((word, first + row * LINE_HEIGHT) for row, word in enumerate(words))

        return (
            [Word(w, left, y, "right", (left + 0.06, y - 0.05)) for w, y in rows(self._source)],
            [Word(w, right, y, "left", (right - 0.06, y - 0.05)) for w, y in rows(self._target)],
        )

    def _write(self, word: Word, linked: bool) -> None:
        self._canvas.write(
            word.x, word.y, word.text, FONT_SIZE,
            ha=word.align, va="baseline", color="black" if linked else GREY,
        )  # fmt: skip

    def _arc(self, start: Point, end: Point, weight: float, horizontal: bool) -> None:
        from matplotlib.patches import PathPatch  # noqa: PLC0415  # slow to import

        self._canvas.figure.add_artist(
            PathPatch(
                _curve(start, end, horizontal), fill=False, edgecolor=DARK, capstyle="round",
                linewidth=_line_width(weight), alpha=_opacity(weight), clip_on=False,
                transform=self._canvas.figure.transFigure,
            )
        )  # fmt: skip

    def _size(
        self, source: Sequence[Word], target: Sequence[Word], horizontal: bool
    ) -> tuple[float, float]:
        """The right and the lower edge of all words."""
        words = [*source, *target]
        right = max(
            word.x + self._word_width(word.text) / (2 if horizontal else 1) for word in words
        )
        return max(3.0, right), max(word.y for word in words)

    def _key(self, y: float) -> None:
        """What the arcs mean."""
        for number, weight in enumerate((0.25, 0.5, 1.0)):
            x = 0.75 * number
            self._arc((x, y), (x + 0.3, y), weight, horizontal=False)
            self._canvas.write(x + 0.36, y + 0.04, f"{weight:g}", 8)
        label = f"attention weight; arcs above {self._threshold:g}"
        self._canvas.write(2.25, y + 0.04, label, 8)


def _line_width(weight: float) -> float:
    return 0.6 + 3 * weight


def _opacity(weight: float) -> float:
    return min(1.0, 0.25 + 0.75 * weight)


def _curve(start: Point, end: Point, horizontal: bool) -> "Outline":
    """From one end to the other, at a right angle to each text."""
    from matplotlib.path import Path as Outline  # noqa: PLC0415

    (x, y), (u, v) = start, end
    middle = (
        [(x, (y + v) / 2), (u, (y + v) / 2)] if horizontal else [((x + u) / 2, y), ((x + u) / 2, v)]
    )
    points = [(a, -b) for a, b in (start, *middle, end)]
    return Outline(points, [Outline.MOVETO, *[Outline.CURVE4] * 3])
