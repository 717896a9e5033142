"""A linear layer in a loop over steps: the gradient of its weight is one product after the loop."""

import torch
from torch import Tensor, nn

from regard.attention.core.deferred_grad import DeferredWeight
from regard.seq2seq.nn.transposed_linear import apply_linear


class DeferredLinear:
    """A linear layer for one loop over steps; made anew for each loop.

    Args:
        linear: The layer, or its replacement (quantised, say) where nothing is trained.
    """

    def __init__(self, linear: nn.Linear) -> None:
        self.linear = linear
        # The weight last: a replacement may have to compute it.
        self.needs_grad = torch.is_grad_enabled() and linear.weight.requires_grad
        if self.needs_grad:
            self.weight = DeferredWeight(linear.weight)

    def __call__(self, inputs: Tensor) -> Tensor:
        """One step's product."""
        if not self.needs_grad:
            return apply_linear(inputs, self.linear)
        inputs = inputs.to(self.linear.weight.dtype)  # under autocast, too
        outputs = self.weight.product(inputs)
        return outputs if self.linear.bias is None else outputs + self.linear.bias
