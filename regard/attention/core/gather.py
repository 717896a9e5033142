"""Gather, for each query, keys of its own from tensors that all queries share.

`columns` `(*batch, query, column)` are the indices of these keys. An axis of size 1 broadcasts; it
is neither expanded nor copied before the gather.
"""

import torch
from jaxtyping import Int, Shaped
from torch import Tensor
from torch.nn import functional

Columns = Int[Tensor, "*#batch #query column"]


def gather_rows(
    keys: Shaped[Tensor, "*#batch key size"], columns: Columns
) -> Shaped[Tensor, "*#batch query column size"]:
    """The rows of a tensor of keys, or of values, at these columns."""
    rows, indices = flat_rows(keys, columns)
    return functional.embedding(indices, rows)


def flat_rows(
    keys: Shaped[Tensor, "*#batch key size"], columns: Columns
) -> tuple[Shaped[Tensor, "row size"], Int[Tensor, "*#batch query column"]]:
    """The keys of all items as rows of one matrix, and the row of each column."""
    return _flat(keys.unsqueeze(-3), columns)


def gather_pairs(
    pairs: Shaped[Tensor, "*#batch #query #key"], columns: Columns
) -> Shaped[Tensor, "*#batch #query #column"]:
    """The entries of a tensor of pairs at these columns; a column that broadcasts stays one."""
    if pairs.shape[-1] == 1:
        return pairs
    rows, indices = _flat(pairs.unsqueeze(-1), columns)
    return rows.squeeze(-1).index_select(0, indices.flatten()).view(indices.shape)


def _flat(
    tensor: Shaped[Tensor, "*#lead key size"], columns: Int[Tensor, "*#lead column"]
) -> tuple[Shaped[Tensor, "row size"], Int[Tensor, "*#lead column"]]:
    """All rows of a tensor as one matrix, and the row of each column.

    In the order of their strides, so that heads, which are transposed, are not copied.
    """
    strides, last = tensor.stride(), tensor.ndim - 2
    order = list(range(last + 1))
    if not torch.compiler.is_compiling():  # torch.compile cannot sort symbolic strides
        order.sort(key=lambda axis: strides[axis], reverse=True)
    steps, step = {}, 1
    for axis in reversed(order):
        steps[axis], step = step, step * tensor.shape[axis]
    indices = columns if steps[last] == 1 else columns * steps[last]
    for axis in range(last):
        if (size := tensor.shape[axis]) != 1:
            start = torch.arange(size, device=columns.device) * steps[axis]
            indices = indices + start.reshape(-1, *[1] * (last - axis))
    return tensor.permute(*order, -1).flatten(0, -2), indices
