"""A linear layer that every step of a loop uses: its weight's gradient is put off, see `owed`."""

import torch
from torch import Tensor, nn

from regard.attention.kernels.deferred_grad import DeferredWeight
from regard.seq2seq.nn.transposed_linear import apply_linear


class DeferredLinear:
    """A linear layer, as one loop over steps uses it; made anew for each loop.

    Args:
        linear: The layer, or what has taken its place (quantised, say) where nothing is learned.
    """

    def __init__(self, linear: nn.Linear) -> None:
        self.linear = linear
        # Asked for last: what has taken a layer's place may have to compute its weight.
        self.learns = torch.is_grad_enabled() and linear.weight.requires_grad
        if self.learns:
            self.weight = DeferredWeight(linear.weight)

    def __call__(self, inputs: Tensor) -> Tensor:
        """One step's product."""
        if not self.learns:
            return apply_linear(inputs, self.linear)
        inputs = inputs.to(self.linear.weight.dtype)  # under autocast, too
        made = self.weight.product(inputs)
        return made if self.linear.bias is None else made + self.linear.bias
