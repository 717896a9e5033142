"""A sheet to draw on in inches, from the top down; it grows with what is put on it."""

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
"""Nothing and all. They differ in brightness most, so with any kind of colour vision."""

GREY = "#6b6b6b"


class Canvas:
    """What matplotlib draws on. No text is taken for mathematics.

    Args:
        texts: Everything that will be written, so that fonts are found for it.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._fonts = fonts_for(texts)
        from matplotlib.figure import Figure  # noqa: PLC0415  # slow to import

        # An inch by an inch, so that parts of it are inches. Saving takes in all that is outside.
        self.figure = Figure(figsize=(1, 1), dpi=100)
        self._measured: dict[tuple[str, float], float] = {}

    @property
    def note(self) -> str:
        """Which letters could not be drawn, for people; nothing if all could."""
        return self._fonts.note

    def write(self, x: float, y: float, text: str, size: float = 10, **options: Any) -> "Text":
        """A text at so many inches from the left and from the top."""
        return self.figure.text(
            x, -y, self._fonts.drawable(escaped(text)), size=size, family=self._fonts.families,
            parse_math=False, usetex=False, **options,
        )  # fmt: skip

    def head(self, legend: str, width: float) -> None:
        """What is drawn, above everything else, in lines of about this width."""
        self.write(0, 0, "\n".join(wrap(legend, max(40, int(width / 0.075)))), va="bottom")

    def measure(self, text: str, size: float) -> float:
        """How wide a text is."""
        if (text, size) not in self._measured:
            self._measured[text, size] = self._width(text, size)
        return self._measured[text, size]

    def _width(self, text: str, size: float) -> float:
        written = self.write(0, 0, text, size)
        box = written.get_window_extent()
        written.remove()
        return float(box.width / self.figure.dpi)

    def axes(self, x: float, y: float, width: float, height: float) -> "Axes":
        """Room for cells or lines, without a frame."""
        axes = self.figure.add_axes((x, -y - height, width, height))
        axes.set(xticks=[], yticks=[])
        axes.spines[:].set_visible(False)
        return axes

    def save(self, path: Path, dots: int = 150) -> None:
        """As PNG or SVG, by the path's ending; the same picture is the same file."""
        import matplotlib  # noqa: PLC0415

        known = {"Date": None} if path.suffix == ".svg" else {"Software": None}
        with matplotlib.rc_context({"svg.hashsalt": "regard", "svg.fonttype": "path"}):
            self.figure.savefig(
                path, dpi=dots, bbox_inches="tight", pad_inches=0.15, metadata=known
            )


def shades() -> "Colormap":
    """From nothing to all."""
    from matplotlib.colors import LinearSegmentedColormap  # noqa: PLC0415

    return LinearSegmentedColormap.from_list("read", [PALE, DARK])
