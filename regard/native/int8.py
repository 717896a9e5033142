"""What lies around an int8 matrix product: quantize its inputs, dequantize its outputs."""

import torch
from torch import Tensor

from regard.native import loader, parallel


def quantize_int8(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Contiguous rows of floats as int8, and each row's scale."""
    count, size = rows.shape
    levels, scales = rows.new_empty(count, size, dtype=torch.int8), rows.new_empty(count)
    loader.require().regard_quantize_int8(
        rows.data_ptr(), levels.data_ptr(), scales.data_ptr(), count, size,
        parallel.threads(rows.numel()),
    )  # fmt: skip
    return levels, scales


def dequantize(
    products: Tensor, row_scales: Tensor, column_scales: Tensor, bias: Tensor | None
) -> Tensor:
    """int32 products, `(row, column)`, times the scales of row and column, plus a bias.

    The products are overwritten.
    """
    rows, count = products.shape
    loader.require().regard_dequantize(
        products.data_ptr(), row_scales.data_ptr(), column_scales.data_ptr(),
        None if bias is None else bias.data_ptr(), rows, count,
        parallel.threads(products.numel()),
    )  # fmt: skip
    return products.view(torch.float32)
