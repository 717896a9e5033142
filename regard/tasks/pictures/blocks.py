"""Attention weights in a terminal, by block characters."""

from regard.seq2seq.seams import Answer
from regard.tasks.pictures.words import shown

SHADES = " ░▒▓█"
"""From nothing to all."""


def as_blocks(answer: Answer) -> str:
    """A row for each token of the answer, a column for each of the source.

    >>> import torch
    >>> print(as_blocks(Answer("b", 0.0, ["a", "b"], ["b"], torch.tensor([[0.2, 0.8]]))))
      ab
    b ░▓
    """
    if answer.weights is None or not answer.target:
        return answer.text
    source = [shown(token) for token in answer.source]
    margin = max(len(token) for token in answer.target) + 1
    lines = [" " * margin + "".join(source)]
    for token, row in zip(answer.target, answer.weights.tolist(), strict=False):
        shades = (SHADES[round(weight * (len(SHADES) - 1))] for weight in row)
        cells = "".join(s * len(t) for s, t in zip(shades, source, strict=True))
        lines.append(f"{token:<{margin}}{cells}".rstrip())
    return "\n".join(lines)
