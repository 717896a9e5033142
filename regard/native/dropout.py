"""Dropout whose mask is a hash of each element's index, so that backward finds it again."""

import torch
from torch import Tensor

from regard.native import loader, parallel


def dropout(inputs: Tensor, rate: float, seed: int, *, first: int = 0) -> Tensor:
    """The inputs with a share set to 0 and the others scaled up; by a seed below 2³².

    Whether an element is dropped depends on its index alone. `first` is the index of the first, for
    inputs that are a part of something larger.
    """
    inputs = inputs.contiguous()
    outputs = torch.empty_like(inputs)
    keep_below = min(round((1 - rate) * 2**32), 2**32 - 1)
    count = inputs.numel()
    loader.require().regard_dropout(
        inputs.data_ptr(), outputs.data_ptr(), first, count, seed, keep_below, 1 / (1 - rate),
        parallel.threads(count),
    )  # fmt: skip
    return outputs
