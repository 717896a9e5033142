"""Sizes, tensors and where they lie in memory, drawn from a seed."""

import random

import torch
from torch import Tensor

SIZES = (0, 1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 67)


class Draw:
    """Everything that a case leaves to chance.

    Args:
        seed: The same for the same case.
        sizes: What sizes are drawn from.
    """

    def __init__(self, seed: int, sizes: tuple[int, ...] = SIZES) -> None:
        self.random, self.sizes = random.Random(seed), sizes
        self.generator = torch.Generator().manual_seed(seed)

    def size(self, most: int = 1 << 30, least: int = 0) -> int:
        """A size; none often enough."""
        return self.random.choice([size for size in self.sizes if least <= size <= most] or [least])

    def some(self, count: int) -> list[int]:
        """Sizes, some small and one of them large, so that a case stays small."""
        found = [self.size(9) for _ in range(count)]
        if count:
            found[self.random.randrange(count)] = self.size()
        return found

    def chance(self, share: float = 0.5) -> bool:
        """So often."""
        return self.random.random() < share

    def tensor(self, *shape: int) -> Tensor:
        """A contiguous tensor that ends where its memory does, and begins anywhere."""
        numel = torch.Size(shape).numel()
        first = self.random.choice((0, 0, 1, 3))
        scale = self.random.choice((0.1, 1.0, 3.0))
        held = torch.randn(first + numel, generator=self.generator) * scale
        return held[first:].view(shape)

    def strided(self, *shape: int) -> Tensor:
        """A tensor of any strides: transposed, a part of a larger one, or the same for many."""
        axis = self.random.randrange(len(shape))
        how = self.random.choice(("plain", "plain", "transposed", "part", "shared", "far"))
        if how == "transposed":
            other = self.random.randrange(len(shape))
            swapped = list(shape)
            swapped[axis], swapped[other] = swapped[other], swapped[axis]
            return self.tensor(*swapped).transpose(axis, other)
        if how == "part":
            longer = [size + 3 * (n == axis) for n, size in enumerate(shape)]
            return self.tensor(*longer).narrow(axis, self.random.randrange(4), shape[axis])
        if how == "far":
            twice = [2 * size if n == axis else size for n, size in enumerate(shape)]
            each = tuple(
                slice(None, None, 2) if n == axis else slice(None) for n in range(len(shape))
            )
            return self.tensor(*twice)[each]
        if how == "shared" and axis < len(shape) - 1:
            one = [1 if n == axis else size for n, size in enumerate(shape)]
            return self.tensor(*one).expand(shape)
        return self.tensor(*shape)

    def index(self, below: int, *shape: int) -> Tensor:
        """Whole numbers from 0 on."""
        return torch.randint(max(1, below), shape, generator=self.generator)

    def allowed(self, *shape: int) -> Tensor:
        """A boolean mask; some rows are empty."""
        shown = torch.rand(shape, generator=self.generator) < self.random.choice((0.2, 0.8))
        empty = torch.rand((*shape[:-1], 1), generator=self.generator) < 0.1
        return shown & ~empty
