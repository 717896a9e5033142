"""A canvas in inches, from the top left; it grows with what is drawn on it."""

from collections.abc import Iterable
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from regard.seq2seq.system.escaping import escaped
from regard.tasks.plots.fonts import fonts_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.text import Text

PALE, DARK = "#f7f7fa", "#2f3996"
"""Weights 0 and 1. They differ most in brightness, so for any kind of colour vision."""

GREY = "#6b6b6b"

METADATA = {".png": "Software", ".svg": "Date", ".pdf": "CreationDate"}
"""What would differ from one saving to the next, or by the version of matplotlib."""


class Canvas:
    """A matplotlib figure. No text is parsed as mathematics.

    Args:
        texts: Everything that will be written, so that fonts can be chosen.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._fonts = fonts_for(texts)
        from matplotlib.figure import Figure  # noqa: PLC0415  # slow to import

        # An inch by an inch, so that its coordinates are inches. Saving includes what lies outside.
        self.figure = Figure(figsize=(1, 1), dpi=100)
        self._widths: dict[tuple[str, float], float] = {}

    @property
    def note(self) -> str:
        """Which characters could not be drawn, for people; empty if all could."""
        return self._fonts.note

    def write(self, x: float, y: float, text: str, size: float = 10, **options: Any) -> "Text":
        """A text at so many inches from the left and from the top."""
        return self.figure.text(
            x, -y, self._fonts.drawable(escaped(text)), size=size, family=self._fonts.families,
            parse_math=False, usetex=False, **options,
        )  # fmt: skip

    def caption(self, text: str, width: float) -> None:
        """Above everything else, in lines of about this width."""
        self.write(0, 0, "\n".join(wrap(text, max(46, int(width / 0.075)))), va="bottom")

    def measure(self, text: str, size: float) -> float:
        """The width of a text."""
        if (text, size) not in self._widths:
            self._widths[text, size] = self._width(text, size)
        return self._widths[text, size]

    def _width(self, text: str, size: float) -> float:
        artist = self.write(0, 0, text, size)
        box = artist.get_window_extent()
        artist.remove()
        return float(box.width / self.figure.dpi)

    def axes(self, x: float, y: float, width: float, height: float) -> "Axes":
        """Axes without ticks and frame."""
        axes = self.figure.add_axes((x, -y - height, width, height))
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        return axes

    def save(self, path: Path, dpi: int = 150) -> None:
        """As PNG, SVG or PDF, by the path's ending; the same figure is the same file."""
        import matplotlib  # noqa: PLC0415

        metadata = {METADATA[path.suffix]: None}
        # Text stays text, to be searched and selected. A PDF embeds its fonts; an SVG names them.
        with matplotlib.rc_context(
            {"svg.hashsalt": "regard", "svg.fonttype": "none", "pdf.fonttype": 42}
        ):
            self.figure.savefig(
                path, dpi=dpi, bbox_inches="tight", pad_inches=0.15, metadata=metadata
            )


def color_map() -> "Colormap":
    """From weight 0 to weight 1."""
    from matplotlib.colors import LinearSegmentedColormap  # noqa: PLC0415

    return LinearSegmentedColormap.from_list("weights", [PALE, DARK])
