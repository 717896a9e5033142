"""Vectors scaled to length 1."""

import torch
from torch import Tensor

from regard.native import loader, parallel


def l2_normalize(vectors: Tensor, min_norm: float) -> Tensor:
    """The vectors divided by their norms, or by the least norm if theirs is smaller."""
    vectors = vectors.contiguous()
    result, size = torch.empty_like(vectors), vectors.shape[-1]
    loader.require().regard_l2_normalize(
        vectors.data_ptr(), result.data_ptr(), min_norm, vectors.numel() // max(1, size), size,
        parallel.threads(vectors.numel()),
    )  # fmt: skip
    return result
