"""softmax(q kᵀ · factor) v of all pairs, and its backward."""

from typing import NamedTuple

import torch
from torch import Tensor

from regard.native import loader, parallel
from regard.native.errors import KernelError
from regard.native.signatures import DOT_SOFTMAX, SAVE_NOTHING, SAVE_STATISTICS, SAVE_WEIGHTS

WEIGHTS_ALIGNMENT = 16
"""Rows of saved weights are padded to a multiple of it."""

Strides = tuple[int, int, int]
NO_STRIDES: Strides = (0, 0, 0)


class DotArguments(NamedTuple):
    """Tensors of four axes, `(outer, inner, row, size)`, to be read by softmax(q kᵀ · factor) v.

    A batch axis of size 1 of keys, values and spans broadcasts; queries have both. The last stride
    is 1.
    """

    queries: Tensor
    keys: Tensor
    values: Tensor
    span: tuple[Tensor, Tensor] | None
    """The first key that a row may read, and the one after the last: `(outer, inner, row, 1)`."""

    factor: float


def read(args: DotArguments) -> Tensor:
    """What each query reads."""
    context = _new_context(args)
    _forward(args, context, (0, 0, 0), SAVE_NOTHING)
    return context


def read_and_save(args: DotArguments, *, weights: bool) -> tuple[Tensor, Tensor]:
    """What each query reads, and what backward needs.

    That is all weights, `(outer, inner, row, key)` and padding; or else the maximum score of each
    row and the reciprocal of its sum of exponentials, `(2, rows of all items)`.
    """
    context, (outer, inner, rows, _) = _new_context(args), args.queries.shape
    if weights:
        width = -(-args.keys.shape[-2] // WEIGHTS_ALIGNMENT) * WEIGHTS_ALIGNMENT
        saved = args.queries.new_empty(outer, inner, rows, width)
        _forward(args, context, (0, 0, saved.data_ptr()), SAVE_WEIGHTS)
    else:
        saved = args.queries.new_empty(2, outer * inner * rows)
        _forward(args, context, (*_halves(saved), 0), SAVE_STATISTICS)
    return context, saved


def backward(
    args: DotArguments, saved: Tensor, grad_context: Tensor, needed: tuple[bool, ...]
) -> list[Tensor | None]:
    """The gradients of queries, keys and values, where they are needed."""
    queries, keys, values, span, factor = args
    (outer, inner, rows, size), (count, value_size) = queries.shape, values.shape[-2:]
    work, items = 2 * outer * inner * rows * count * (size + value_size), max(1, outer * inner)
    running = min(parallel.threads(work), items)
    grads, slabs, strides = [], [], []
    for tensor, is_needed in zip((queries, keys, values), needed, strict=True):
        shared = tensor.shape[:2] != queries.shape[:2]
        # Where items share a tensor, each thread has a sum of its own.
        grad = tensor.new_zeros(running, *tensor.shape) if shared else torch.empty_like(tensor)
        grads.append(grad if is_needed else None)
        slabs.append(tensor.numel() if shared else 0)
        strides.append(_strides(grad[0] if shared else grad))
    has_weights = saved.ndim == 4
    saved_pointers = (0, 0, saved.data_ptr()) if has_weights else (*_halves(saved), 0)
    packed = DOT_SOFTMAX.pack(
        queries.data_ptr(), keys.data_ptr(), values.data_ptr(), grad_context.data_ptr(),
        *_span_pointers(span), 0, *saved_pointers,
        *(0 if each is None else each.data_ptr() for each in grads),
        *_strides(queries), *_strides(keys), *_strides(values), *_strides(grad_context),
        *_span_strides(span), *NO_STRIDES, *strides[0], *strides[1], *strides[2],
        *slabs[1:], outer, inner, rows, count, size, value_size, factor,
        True, SAVE_WEIGHTS if has_weights else SAVE_STATISTICS,
    )  # fmt: skip
    _call(packed, running, count)
    return [grad.sum(0) if grad is not None and grad.ndim == 5 else grad for grad in grads]


def _new_context(args: DotArguments) -> Tensor:
    """An empty context, laid out in memory as the queries are, if sizes agree."""
    queries, value_size = args.queries, args.values.shape[-1]
    if value_size == queries.shape[-1]:
        return torch.empty_like(queries)
    return queries.new_empty(*queries.shape[:-1], value_size)


def _forward(
    args: DotArguments, context: Tensor, saved_pointers: tuple[int, int, int], what: int
) -> None:
    queries, keys, values, span, factor = args
    (outer, inner, rows, size), (count, value_size) = queries.shape, values.shape[-2:]
    packed = DOT_SOFTMAX.pack(
        queries.data_ptr(), keys.data_ptr(), values.data_ptr(), 0, *_span_pointers(span),
        context.data_ptr(), *saved_pointers, 0, 0, 0,
        *_strides(queries), *_strides(keys), *_strides(values), *NO_STRIDES, *_span_strides(span),
        *_strides(context), *NO_STRIDES, *NO_STRIDES, *NO_STRIDES,
        0, 0, outer, inner, rows, count, size, value_size, factor, False, what,
    )  # fmt: skip
    _call(packed, parallel.threads(outer * inner * rows * count * (size + value_size)), count)


def _call(packed: bytes, threads: int, keys: int) -> None:
    if loader.require().regard_dot_softmax(packed, threads):
        raise KernelError(f"out of memory while reading {keys} keys. Free some.")


def _span_pointers(span: tuple[Tensor, Tensor] | None) -> tuple[int, int]:
    return (0, 0) if span is None else (span[0].data_ptr(), span[1].data_ptr())


def _span_strides(span: tuple[Tensor, Tensor] | None) -> Strides:
    return NO_STRIDES if span is None else _strides(span[0])


def _halves(saved: Tensor) -> tuple[int, int]:
    start = saved.data_ptr()
    return start, start + saved.numel() // 2 * saved.element_size()


def _strides(tensor: Tensor) -> Strides:
    """Along both batch axes and along the rows; 0 along an axis of size 1, which broadcasts."""
    (outer, inner, rows, _), strides = tensor.shape, tensor.stride()
    return (
        strides[0] if outer > 1 else 0,
        strides[1] if inner > 1 else 0,
        strides[2] if rows > 1 else 0,
    )
