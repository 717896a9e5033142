"""Residual connection and layer norm in one pass."""

import torch
from torch import Tensor, nn

from regard.native import loader, parallel


def add_layernorm(
    inputs: Tensor, update: Tensor | None, bias: Tensor | None, norm: nn.LayerNorm
) -> Tensor:
    """Add update and bias to the rows of inputs, in place; return norm(inputs)."""
    rows, size = inputs.shape
    normalized = torch.empty_like(inputs)
    loader.require().regard_add_layernorm(
        inputs.data_ptr(), *(None if each is None else each.data_ptr() for each in (update, bias)),
        norm.weight.data_ptr(), norm.bias.data_ptr(), norm.eps, normalized.data_ptr(), rows, size,
        parallel.threads(inputs.numel()),
    )  # fmt: skip
    return normalized
