"""What all sides are given: the same numbers, the same lengths."""

import torch
from torch import Tensor

from benchmarks.steps import BOTH, FORWARD


def drawn(*shapes: tuple[int, ...], step: str = FORWARD) -> list[Tensor]:
    """Normal numbers, the same for every side; with a gradient if there is a backward."""
    generator = torch.Generator().manual_seed(0)
    return [
        torch.randn(shape, generator=generator).requires_grad_(step == BOTH) for shape in shapes
    ]


def lengths_of(batch: int, keys: int) -> list[int]:
    """Lengths from all of the keys down to half of them."""
    return [keys - (keys // 2) * item // max(1, batch - 1) for item in range(batch)]
