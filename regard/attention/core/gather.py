"""Each query's own keys, taken from tensors that all queries share.

`columns` `(*batch, query, column)` say which keys they are. An axis of size 1 serves all; it is
neither expanded nor copied before something is taken from it.
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
    rows, places = flat_rows(keys, columns)
    return functional.embedding(places, rows)


def flat_rows(
    keys: Shaped[Tensor, "*#batch key size"], columns: Columns
) -> tuple[Shaped[Tensor, "row size"], Int[Tensor, "*#batch query column"]]:
    """All keys of all items one after another, and at which of these rows each column is."""
    return _flat(keys.unsqueeze(-3), columns)


def gather_pairs(
    pairs: Shaped[Tensor, "*#batch #query #key"], columns: Columns
) -> Shaped[Tensor, "*#batch #query #column"]:
    """What a tensor of pairs holds at these columns; one column that serves all stays one."""
    if pairs.shape[-1] == 1:
        return pairs
    rows, places = _flat(pairs.unsqueeze(-1), columns)
    return rows.squeeze(-1).index_select(0, places.flatten()).view(places.shape)


def _flat(
    tensor: Shaped[Tensor, "*#lead key size"], columns: Int[Tensor, "*#lead column"]
) -> tuple[Shaped[Tensor, "row size"], Int[Tensor, "*#lead column"]]:
    """All rows of a tensor one after another, and at which of them each column is.

    In the order in which they lie in memory, so that heads, which are transposed, are not copied.
    """
    strides, last = tensor.stride(), tensor.ndim - 2
    order = list(range(last + 1))
    if not torch.compiler.is_compiling():  # a compiler does not sort numbers that it leaves open
        order.sort(key=lambda axis: strides[axis], reverse=True)
    steps, step = {}, 1
    for axis in reversed(order):
        steps[axis], step = step, step * tensor.shape[axis]
    places = columns if steps[last] == 1 else columns * steps[last]
    for axis in range(last):
        if (size := tensor.shape[axis]) != 1:
            start = torch.arange(size, device=columns.device) * steps[axis]
            places = places + start.reshape(-1, *[1] * (last - axis))
    return tensor.permute(*order, -1).flatten(0, -2), places
