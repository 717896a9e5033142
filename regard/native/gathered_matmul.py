"""Products with rows that each query picks from a table, read in place instead of gathered."""

from torch import Tensor

from regard.native import loader, parallel

DOT, WEIGHTED_SUM, SCATTER_ADD = range(3)


def dot(queries: Tensor, table: Tensor, index: Tensor) -> Tensor:
    """q_t · row of `(query, size)` with the rows, `(row, size)`, at `(query, column)` indices."""
    result = queries.new_empty(index.shape)
    _call(DOT, queries, table, index, result)
    return result


def weighted_sum(weights: Tensor, table: Tensor, index: Tensor) -> Tensor:
    """Σ_j w_tj · row of `(query, column)` weights with the rows at as many indices."""
    result = table.new_empty(len(index), table.shape[-1])
    _call(WEIGHTED_SUM, weights, table, index, result)
    return result


def scatter_add(weights: Tensor, queries: Tensor, index: Tensor, rows: int) -> Tensor:
    """Each query added to the rows at its indices, by its weights: `(row, size)`."""
    result = queries.new_zeros(rows, queries.shape[-1])
    _call(SCATTER_ADD, weights, queries, index, result)
    return result


def _call(operation: int, left: Tensor, right: Tensor, index: Tensor, result: Tensor) -> None:
    left, right, index = left.contiguous(), right.contiguous(), index.contiguous()
    (count, width), size = index.shape, right.shape[-1]
    loader.require().regard_gathered_matmul(
        operation, left.data_ptr(), right.data_ptr(), index.data_ptr(), result.data_ptr(),
        count, width, size, parallel.threads(index.numel() * size),
    )  # fmt: skip
