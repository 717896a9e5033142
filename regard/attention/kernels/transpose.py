"""Rows for columns."""

import torch
from torch import Tensor

from regard.attention.core.tracing import in_functorch
from regard.attention.kernels import native


def transposed(matrix: Tensor) -> Tensor:
    """`(n, m)` to `(m, n)`, contiguous, without a gradient; in C where that was built."""
    matrix = matrix.detach()
    plain = matrix.is_cpu and matrix.dtype == torch.float32 and matrix.is_contiguous()
    if not plain or native.library() is None or torch.compiler.is_compiling() or in_functorch():
        return matrix.mT.contiguous()
    return native.transposed(matrix)
