"""Something to draw: words of two texts, and weights whose greatest are on the diagonal."""

from collections.abc import Sequence

import torch

from regard.tasks.plots import AttentionMap

WORDS = ("the", "extraordinarily", "quick", "$x$", "fox", "Donaudampfschiff", "a", "lazy", "dog")


def sentence(length: int) -> list[str]:
    """So many words, of one letter and of many."""
    return [WORDS[place % len(WORDS)] for place in range(length)]


def drawing(
    source: Sequence[str], target: Sequence[str], names: Sequence[str] = ("decoder",)
) -> AttentionMap:
    """Each target word reads mostly the source word at its place."""
    torch.manual_seed(1)
    readings = {
        name: (5 * torch.eye(len(target), len(source)) + torch.rand(len(target), len(source)))
        for name in names
    }
    weights = {name: each.softmax(-1) for name, each in readings.items()}
    return AttentionMap("a title", "forced to the given target", source, target, weights)
