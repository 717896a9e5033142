"""A contiguous transpose."""

from torch import Tensor

from regard.native import loader, parallel
from regard.native.eligibility import usable


def transposed(matrix: Tensor) -> Tensor:
    """`(n, m)` to `(m, n)`, contiguous and detached; in C where that is usable."""
    matrix = matrix.detach()
    if not usable(matrix, contiguous=True):
        return matrix.mT.contiguous()
    rows, columns = matrix.shape
    result = matrix.new_empty(columns, rows)
    loader.require().regard_transpose(
        matrix.data_ptr(), result.data_ptr(), rows, columns, parallel.threads(matrix.numel())
    )
    return result
