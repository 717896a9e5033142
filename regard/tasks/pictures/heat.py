"""Attention weights as a picture: PNG or SVG, by matplotlib."""

from collections.abc import Sequence
from pathlib import Path

from regard.seq2seq.errors import ConfigError
from regard.seq2seq.seams import Answer
from regard.tasks.pictures.words import shown


def save_picture(path: Path, answers: Sequence[Answer], titles: Sequence[str]) -> None:
    """One heat map below the other, as PNG or SVG by the path's ending."""
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415  # an extra, and slow to import
    except ImportError:
        raise ConfigError(
            "Pictures are drawn with matplotlib, which is not installed. Install it: "
            "pip install 'regard[plot]'"
        ) from None
    sizes = [max(2.0, 0.26 * len(answer.target) + 1.2) for answer in answers]
    widest = max(len(answer.source) for answer in answers)
    figure = Figure(figsize=(max(5.0, 0.26 * widest + 1.8), sum(sizes)), layout="constrained")
    axes = figure.subplots(len(answers), 1, squeeze=False, height_ratios=sizes)[:, 0]
    for axis, answer, title in zip(axes, answers, titles, strict=True):
        assert answer.weights is not None
        drawn = axis.imshow(answer.weights.tolist(), cmap="cividis", vmin=0, vmax=1, aspect="equal")
        axis.set_xticks(range(len(answer.source)), [shown(token) for token in answer.source])
        axis.set_yticks(range(len(answer.target)), answer.target)
        axis.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
        axis.set_title(title, loc="left")
        axis.set_anchor("W")
    figure.colorbar(drawn, ax=list(axes), label="how much of it was read", shrink=0.6)
    figure.savefig(path, dpi=150)
