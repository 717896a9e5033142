"""Dot products with each query's own keys, and sums of its own values, without gathering these.

Gathered, a query's keys are a matrix, and autograd would save one for each query. Here they are
read in place, in C where it is usable; in half precision they are gathered for some queries at a
time, and again in backward. The derivatives of each of the three are the other two, so that they
have derivatives of any order:

    dot            e_tj = q_t · k_c(t,j)
    weighted sum   u_t = Σ_j w_tj v_c(t,j)
    scatter add    g_c(t,j) += w_tj q_t
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from regard.attention.core.axes import Context, Queries, Values
from regard.attention.core.gather import Columns, flat_rows, gather_rows
from regard.attention.core.numerics import broadcast_batch, upcast
from regard.attention.core.tracing import is_traced
from regard.native import gathered_matmul
from regard.native.eligibility import usable

PerColumn = Float[Tensor, "*#batch query column"]
"""A value for each query and each of its columns."""

FEW, BLOCK = 1 << 16, 1 << 18
"""Up to how many elements all are gathered at once, and how many at a time if there are more: as
many as stay in a cache."""


def dot(
    queries: Queries, keys: Float[Tensor, "*#batch key query_size"], columns: Columns
) -> PerColumn:
    """The dot product of each query with the keys at its columns, in float32 at least."""
    if _gathers_all(keys, columns):
        return (upcast(queries).unsqueeze(-2) @ upcast(gather_rows(keys, columns)).mT).squeeze(-2)
    return _flattened(_dot, upcast(queries), keys, columns)


def weighted_sum(weights: PerColumn, values: Values, columns: Columns) -> Context:
    """The sum of the values at each query's columns by its weights, in float32 at least."""
    if _gathers_all(values, columns):
        return (weights.unsqueeze(-2) @ upcast(gather_rows(values, columns))).squeeze(-2)
    return _flattened(_weighted_sum, weights, values, columns)


def _gathers_all(keys: Tensor, columns: Tensor) -> bool:
    """If it is little; and under torch.compile and transforms, which need plain operations."""
    few = columns.numel() * keys.shape[-1] <= FEW
    return few or is_traced()


def _flattened(
    function: Callable[..., Tensor], left: Tensor, keys: Tensor, columns: Tensor
) -> Tensor:
    """The function of all items' queries as one axis, and of all their keys as one table."""
    table, index = flat_rows(keys, columns)
    batch = broadcast_batch(left.shape[:-2], index.shape[:-2])
    left, index = (tensor.expand(*batch, *tensor.shape[-2:]) for tensor in (left, index))
    result = function(left.flatten(0, -2), table, index.flatten(0, -2))
    return result.unflatten(0, index.shape[:-1])


class _Dot(torch.autograd.Function):
    """`(query, size)`, table `(row, size)` and index `(query, column)` to `(query, column)`."""

    @staticmethod
    def forward(ctx: Any, queries: Tensor, table: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(queries, table, index)
        if usable(queries, table):
            return gathered_matmul.dot(queries, table, index)
        if table.dtype == queries.dtype:
            return _embedding_bag_dot(queries, table, index)
        result = queries.new_empty(index.shape)
        for part in _parts(index, table):
            gathered = upcast(functional.embedding(index[part], table))
            torch.matmul(queries[part, None, :], gathered.mT, out=result[part, None, :])
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad,), (queries, table, index) = grads, ctx.saved_tensors
        needed = ctx.needs_input_grad
        return (
            _weighted_sum(grad, table, index) if needed[0] else None,
            _scatter_add(grad, queries, index, table) if needed[1] else None,
            None,
        )


class _WeightedSum(torch.autograd.Function):
    """Weights `(query, column)` and table `(row, size)` at the index to `(query, size)`."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, table: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(weights, table, index)
        if usable(weights, table):
            return gathered_matmul.weighted_sum(weights, table, index)
        if table.dtype == weights.dtype:
            return functional.embedding_bag(index, table, mode="sum", per_sample_weights=weights)
        result = weights.new_empty(len(index), table.shape[-1])
        for part in _parts(index, table):
            gathered = upcast(functional.embedding(index[part], table))
            torch.matmul(weights[part, None, :], gathered, out=result[part, None, :])
        return result

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad,), (weights, table, index) = grads, ctx.saved_tensors
        needed = ctx.needs_input_grad
        return (
            _dot(grad, table, index) if needed[0] else None,
            _scatter_add(weights, grad, index, table) if needed[1] else None,
            None,
        )


class _ScatterAdd(torch.autograd.Function):
    """Queries `(query, size)`, by weights, added to zeros like `table` at their index."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, queries: Tensor, index: Tensor, table: Tensor) -> Tensor:
        ctx.save_for_backward(weights, queries, index)
        if usable(weights, queries):
            return gathered_matmul.scatter_add(weights, queries, index, len(table)).to(table.dtype)
        result = queries.new_zeros(table.shape)
        for part in _parts(index, table):
            added = weights[part, :, None] * queries[part, None, :]
            result.index_add_(0, index[part].flatten(), added.flatten(0, 1))
        return result.to(table.dtype)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (grad,), (weights, queries, index) = grads, ctx.saved_tensors
        needed = ctx.needs_input_grad
        return (
            _dot(queries, grad, index) if needed[0] else None,
            _weighted_sum(weights, grad, index) if needed[1] else None,
            None,
            None,
        )


_dot: Callable[..., Tensor] = _Dot.apply
_weighted_sum: Callable[..., Tensor] = _WeightedSum.apply
_scatter_add: Callable[..., Tensor] = _ScatterAdd.apply


def _embedding_bag_dot(queries: Tensor, table: Tensor, index: Tensor) -> Tensor:
    """Dot products without gathering: the derivative of an embedding bag by its weights."""
    count, width = index.shape
    bags = torch.arange(count, device=index.device)
    result = torch.ops.aten._embedding_bag_per_sample_weights_backward(
        queries.contiguous(), table, index.flatten(), bags * width, bags.repeat_interleave(width), 0
    )
    return result.view(count, width)


def _parts(index: Tensor, table: Tensor) -> Iterator[slice]:
    """Some queries at a time, so that a block of rows is gathered."""
    count = max(1, BLOCK // max(1, index.shape[-1] * table.shape[-1]))
    return (slice(at, at + count) for at in range(0, len(index), count))
