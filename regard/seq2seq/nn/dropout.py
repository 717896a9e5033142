"""Fast dropout: torch draws a random number for each element, one after another.

On a CPU that is a seventh of a small Transformer's update. Here one number is drawn, and an
element is dropped by a hash of that and of its index, which backward computes again.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from regard.native.dropout import dropout
from regard.native.eligibility import usable


class Dropout(nn.Module):
    """Dropout, as `nn.Dropout`.

    Args:
        rate: The probability that an element is zeroed.
    """

    def __init__(self, rate: float = 0.0) -> None:
        super().__init__()
        nn.Dropout(rate)  # raises what torch would
        self.rate = rate

    def forward(self, inputs: Tensor) -> Tensor:
        if not self.training or not self.rate:
            return inputs
        if usable(inputs):
            seed = int(torch.randint(2**32, (), dtype=torch.int64))
            outputs: Tensor = _HashDropout.apply(inputs, self.rate, seed)  # type: ignore[no-untyped-call]
            return outputs
        return functional.dropout(inputs, self.rate)

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


class _HashDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, rate: float, seed: int) -> Tensor:
        ctx.options = rate, seed
        return dropout(inputs, rate, seed)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return dropout(gradient, *ctx.options), None, None
