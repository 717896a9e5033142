"""Products with each query's own keys, and sums of its own values, without holding these.

Gathered, a query's keys are a matrix, and a gradient would keep one for each query. Here they are
read where they are, in C if that was built, or, in half precision, gathered for some queries at a
time, and read again for the gradient. The derivatives of each of the three are the other two, so
that they can be taken as often as wanted:

    products   e_tj = q_t · k_c(t,j)
    sums       u_t = Σ_j w_tj v_c(t,j)
    spread     g_c(t,j) += w_tj q_t
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

Own = Float[Tensor, "*#batch query column"]
"""A number for each query and each of its own keys."""

FEW, BLOCK = 1 << 16, 1 << 18
"""Up to how many numbers all are gathered at once, and how many at a time if there are more: as
many as stay in a cache."""


def dot(queries: Queries, keys: Float[Tensor, "*#batch key query_size"], columns: Columns) -> Own:
    """The dot product of each query with the keys at its columns, in float32 at least."""
    if _plain(keys, columns):
        return (upcast(queries).unsqueeze(-2) @ upcast(gather_rows(keys, columns)).mT).squeeze(-2)
    return _over_all(_dot, upcast(queries), keys, columns)


def weighted_sum(weights: Own, values: Values, columns: Columns) -> Context:
    """The sum of the values at each query's columns by its weights, in float32 at least."""
    if _plain(values, columns):
        return (weights.unsqueeze(-2) @ upcast(gather_rows(values, columns))).squeeze(-2)
    return _over_all(_weighted_sum, weights, values, columns)


def _plain(keys: Tensor, columns: Tensor) -> bool:
    """Little is gathered at once; compilers and transforms look through nothing but plain code."""
    few = columns.numel() * keys.shape[-1] <= FEW
    return few or is_traced()


def _over_all(how: Callable[..., Tensor], own: Tensor, keys: Tensor, columns: Tensor) -> Tensor:
    """What each query makes of its own vector: the queries of all items one after another."""
    rows, places = flat_rows(keys, columns)
    batch = broadcast_batch(own.shape[:-2], places.shape[:-2])
    own, places = (tensor.expand(*batch, *tensor.shape[-2:]) for tensor in (own, places))
    return how(own.flatten(0, -2), rows, places.flatten(0, -2)).unflatten(0, places.shape[:-1])


class _Dot(torch.autograd.Function):
    """`(query, size)`, rows `(row, size)` and places `(query, column)` to `(query, column)`."""

    @staticmethod
    def forward(ctx: Any, queries: Tensor, rows: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(queries, rows, places)
        if usable(queries, rows):
            return gathered_matmul.dot(queries, rows, places)
        if rows.dtype == queries.dtype:
            return _inner(queries, rows, places)
        found = queries.new_empty(places.shape)
        for part in _parts(places, rows):
            own = upcast(functional.embedding(places[part], rows))
            torch.matmul(queries[part, None, :], own.mT, out=found[part, None, :])
        return found

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,), (queries, rows, places) = gradients, ctx.saved_tensors
        wanted = ctx.needs_input_grad
        return (
            _weighted_sum(gradient, rows, places) if wanted[0] else None,
            _scatter_add(gradient, queries, places, rows) if wanted[1] else None,
            None,
        )


class _WeightedSum(torch.autograd.Function):
    """Weights `(query, column)` and rows `(row, size)` at places to `(query, size)`."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, rows: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(weights, rows, places)
        if usable(weights, rows):
            return gathered_matmul.weighted_sum(weights, rows, places)
        if rows.dtype == weights.dtype:
            return functional.embedding_bag(places, rows, mode="sum", per_sample_weights=weights)
        found = weights.new_empty(len(places), rows.shape[-1])
        for part in _parts(places, rows):
            own = upcast(functional.embedding(places[part], rows))
            torch.matmul(weights[part, None, :], own, out=found[part, None, :])
        return found

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,), (weights, rows, places) = gradients, ctx.saved_tensors
        wanted = ctx.needs_input_grad
        return (
            _dot(gradient, rows, places) if wanted[0] else None,
            _scatter_add(weights, gradient, places, rows) if wanted[1] else None,
            None,
        )


class _ScatterAdd(torch.autograd.Function):
    """Queries `(query, size)` added to what is at their places, by weights; shaped like `rows`."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, queries: Tensor, places: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(weights, queries, places)
        if usable(weights, queries):
            return gathered_matmul.scatter_add(weights, queries, places, len(rows)).to(rows.dtype)
        found = queries.new_zeros(rows.shape)
        for part in _parts(places, rows):
            added = weights[part, :, None] * queries[part, None, :]
            found.index_add_(0, places[part].flatten(), added.flatten(0, 1))
        return found.to(rows.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,), (weights, queries, places) = gradients, ctx.saved_tensors
        wanted = ctx.needs_input_grad
        return (
            _dot(queries, gradient, places) if wanted[0] else None,
            _weighted_sum(weights, gradient, places) if wanted[1] else None,
            None,
            None,
        )


_dot: Callable[..., Tensor] = _Dot.apply
_weighted_sum: Callable[..., Tensor] = _WeightedSum.apply
_scatter_add: Callable[..., Tensor] = _ScatterAdd.apply


def _inner(queries: Tensor, rows: Tensor, places: Tensor) -> Tensor:
    """Products without gathering: the derivative of a bag's sum by the weights in it."""
    count, width = places.shape
    bags = torch.arange(count, device=places.device)
    found = torch.ops.aten._embedding_bag_per_sample_weights_backward(
        queries.contiguous(), rows, places.flatten(), bags * width, bags.repeat_interleave(width), 0
    )
    return found.view(count, width)


def _parts(places: Tensor, rows: Tensor) -> Iterator[slice]:
    """Some queries at a time, so that a block of rows is gathered for them."""
    some = max(1, BLOCK // max(1, places.shape[-1] * rows.shape[-1]))
    return (slice(at, at + some) for at in range(0, len(places), some))
