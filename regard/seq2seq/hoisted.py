"""A linear layer that every step of a loop uses: its weight's gradient is put off, see `owed`."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from regard.attention.kernels.autocast import off
from regard.attention.kernels.owed import Owed, collected
from regard.seq2seq.turned import product


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
            self.owed = Owed()
            self.weight = collected(linear.weight, self.owed)
            self.turned = linear.weight.detach().mT.contiguous()

    def __call__(self, inputs: Tensor) -> Tensor:
        """One step's product."""
        if not self.learns:
            return product(inputs, self.linear)
        inputs = inputs.to(self.weight.dtype)  # under autocast, too
        made: Tensor = _Product.apply(inputs, self.weight, self.turned, self.owed)  # type: ignore[no-untyped-call]
        return made if self.linear.bias is None else made + self.linear.bias


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, inputs: Tensor, weight: Tensor, turned: Tensor, owed: Owed) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        ctx.owed = owed
        with off(inputs.device.type):
            return inputs @ turned

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, None, None, None]:
        inputs, weight = ctx.saved_tensors
        ctx.owed.add(gradient.flatten(0, -2), inputs.flatten(0, -2))
        return gradient @ weight if ctx.needs_input_grad[0] else None, None, None, None
