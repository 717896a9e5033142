"""Rows for columns."""

import torch
from torch import Tensor

from regard.attention.kernels import native
from regard.attention.looking import in_transform


def turned(matrix: Tensor) -> Tensor:
    """`(n, m)` to `(m, n)`, contiguous, without a gradient; in C where that was built."""
    matrix = matrix.detach()
    plain = matrix.is_cpu and matrix.dtype == torch.float32 and matrix.is_contiguous()
    if not plain or native.library() is None or torch.compiler.is_compiling() or in_transform():
        return matrix.mT.contiguous()
    return native.turned(matrix)
