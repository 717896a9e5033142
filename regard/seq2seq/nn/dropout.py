"""Dropout that costs what it should: torch draws a number for each element, one after another.

On a CPU that is a seventh of a small Transformer's update. Here one number is drawn, and
each element's fate is a hash of that and of its place, found again on the way back.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from regard.attention.kernels import native


class Dropout(nn.Module):
    """In training, a share of the numbers is 0 and the others are larger by as much.

    Args:
        rate: What share.
    """

    def __init__(self, rate: float = 0.0) -> None:
        super().__init__()
        nn.Dropout(rate)  # raises what torch would
        self.rate = rate

    def forward(self, inputs: Tensor) -> Tensor:
        if not self.training or not self.rate:
            return inputs
        if inputs.is_cpu and inputs.dtype == torch.float32 and native.library() is not None:
            seed = int(torch.randint(2**32, (), dtype=torch.int64))
            dropped: Tensor = _Dropped.apply(inputs, self.rate, seed)  # type: ignore[no-untyped-call]
            return dropped
        return functional.dropout(inputs, self.rate)

    def extra_repr(self) -> str:
        return f"rate={self.rate}"


class _Dropped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, rate: float, seed: int) -> Tensor:
        ctx.drawn = rate, seed
        return native.dropout(inputs, rate, seed)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return native.dropout(gradient, *ctx.drawn), None, None
