"""Attention weights for people: block characters in a terminal, and a picture."""

from collections.abc import Sequence
from pathlib import Path

from regard.seq2seq.errors import ConfigError
from regard.seq2seq.seams import Answer

SHADES = " ░▒▓█"
"""From nothing to all."""

END = "∎"
"""How the end of a source is shown."""


def as_blocks(answer: Answer) -> str:
    """A row for each token of the answer, a column for each of the source.

    >>> import torch
    >>> print(as_blocks(Answer("b", 0.0, ["a", "b"], ["b"], torch.tensor([[0.2, 0.8]]))))
      ab
    b ░▓
    """
    if answer.weights is None:
        return answer.text
    source = [_shown(token) for token in answer.source]
    margin = max(len(token) for token in answer.target) + 1
    lines = [" " * margin + "".join(source)]
    for token, row in zip(answer.target, answer.weights.tolist(), strict=False):
        shades = (SHADES[round(weight * (len(SHADES) - 1))] for weight in row)
        cells = "".join(s * len(t) for s, t in zip(shades, source, strict=True))
        lines.append(f"{token:<{margin}}{cells}".rstrip())
    return "\n".join(lines)


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
        shown = axis.imshow(answer.weights.tolist(), cmap="cividis", vmin=0, vmax=1, aspect="equal")
        axis.set_xticks(range(len(answer.source)), [_shown(token) for token in answer.source])
        axis.set_yticks(range(len(answer.target)), answer.target)
        axis.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
        axis.set_title(title, loc="left")
        axis.set_anchor("W")
    figure.colorbar(shown, ax=list(axes), label="how much of it was read", shrink=0.6)
    figure.savefig(path, dpi=150)


def _shown(token: str) -> str:
    return token or END
