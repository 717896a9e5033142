"""A weight that every step of a loop uses, with its gradient computed once, after the last step.

Step by step the gradient of a weight is one small product and one large sum each. Put off until all
steps have been gone back through, it is one large product.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from regard.attention.kernels.autocast import off

Owed = list[tuple[Tensor, Tensor]]
"""What went into each step's product, with the gradient that came back to it."""


class Hoisted:
    """A linear layer, as one loop over steps uses it; made anew for each loop.

    Args:
        linear: The layer, or what has taken its place (quantised, say) where nothing is learned.
    """

    def __init__(self, linear: nn.Linear) -> None:
        self.linear = linear
        # Asked for last: what has taken a layer's place may have to compute its weight.
        self.learns = torch.is_grad_enabled() and linear.weight.requires_grad
        if self.learns:
            self.owed: Owed = []
            self.weight: Tensor = _Collected.apply(linear.weight, self.owed)  # type: ignore[no-untyped-call]

    def __call__(self, inputs: Tensor) -> Tensor:
        """One step's product."""
        if not self.learns:
            return self.linear(inputs)
        inputs = inputs.to(self.weight.dtype)  # under autocast, too
        product: Tensor = _Product.apply(inputs, self.weight, self.owed)  # type: ignore[no-untyped-call]
        return product if self.linear.bias is None else product + self.linear.bias


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, owed: Owed) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        ctx.owed = owed
        with off(inputs.device.type):
            return functional.linear(inputs, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, None, None]:
        inputs, weight = ctx.saved_tensors
        ctx.owed.append((inputs, gradient))
        return gradient @ weight if ctx.needs_input_grad[0] else None, None, None


class _Collected(torch.autograd.Function):
    """The weight itself; its way back comes after that of all products, and pays what they owe."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, owed: Owed) -> Tensor:
        ctx.owed = owed
        ctx.set_materialize_grads(False)
        return weight.view_as(weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, _: Tensor | None) -> tuple[Tensor | None, None]:
        if not ctx.owed:
            return None, None
        inputs, gradients = (
            torch.cat([tensor.flatten(0, -2) for tensor in tensors])
            for tensors in zip(*ctx.owed, strict=True)
        )
        ctx.owed.clear()
        return gradients.mT @ inputs, None
