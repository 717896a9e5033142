"""Softmax reads of dot products, and the way back: dots.c."""

from typing import NamedTuple

import torch
from torch import Tensor

from regard.attention.core.errors import KernelError
from regard.attention.kernels import native
from regard.attention.kernels.signatures import DOTS, DOTS_NOTHING, DOTS_SHARES, DOTS_WEIGHTS

LANES = 16
"""Kept weights lie in rows of a multiple of it."""

Strides = tuple[int, int, int]
NONE: Strides = (0, 0, 0)


class DotArguments(NamedTuple):
    """Tensors of four axes, `(outer, inner, row, size)`, to be read by softmax(q kᵀ · factor) v.

    A batch axis of size 1 of keys, values and spans serves all; queries have both. The numbers of a
    vector lie one after another.
    """

    queries: Tensor
    keys: Tensor
    values: Tensor
    span: tuple[Tensor, Tensor] | None
    """The first key that a row sees, and the one after the last: `(outer, inner, row, 1)`."""

    factor: float


def read(dots: DotArguments) -> Tensor:
    """What each query reads."""
    context = _context(dots)
    _forward(dots, context, (0, 0, 0), DOTS_NOTHING)
    return context


def read_with_weights(dots: DotArguments, *, weights: bool) -> tuple[Tensor, Tensor]:
    """What each query reads, and what the way back needs.

    That is all weights, `(outer, inner, row, key)` and padding; or else the highest score of each
    row, and what its exponentials were multiplied by, `(2, rows of all items)`.
    """
    context, (outer, inner, rows, _) = _context(dots), dots.queries.shape
    if weights:
        wide = -(-dots.keys.shape[-2] // LANES) * LANES
        kept = dots.queries.new_empty(outer, inner, rows, wide)
        _forward(dots, context, (0, 0, kept.data_ptr()), DOTS_WEIGHTS)
    else:
        kept = dots.queries.new_empty(2, outer * inner * rows)
        _forward(dots, context, (*_halves(kept), 0), DOTS_SHARES)
    return context, kept


def backward(
    dots: DotArguments, kept: Tensor, sent: Tensor, wanted: tuple[bool, ...]
) -> list[Tensor | None]:
    """What a gradient of the context sends to queries, keys and values, where it is wanted."""
    queries, keys, values, span, factor = dots
    (outer, inner, rows, size), (count, wide) = queries.shape, values.shape[-2:]
    work, items = 2 * outer * inner * rows * count * (size + wide), max(1, outer * inner)
    running = min(native.threads(work), items)
    sums, slabs, strides = [], [], []
    for tensor, needed in zip((queries, keys, values), wanted, strict=True):
        shared = tensor.shape[:2] != queries.shape[:2]
        # Where items share, each thread has a sum of its own.
        total = tensor.new_zeros(running, *tensor.shape) if shared else torch.empty_like(tensor)
        sums.append(total if needed else None)
        slabs.append(tensor.numel() if shared else 0)
        strides.append(_strides(total[0] if shared else total))
    whole = kept.ndim == 4
    found = (0, 0, kept.data_ptr()) if whole else (*_halves(kept), 0)
    told = DOTS.pack(
        queries.data_ptr(), keys.data_ptr(), values.data_ptr(), sent.data_ptr(), *_places(span),
        0, *found, *(0 if each is None else each.data_ptr() for each in sums),
        *_strides(queries), *_strides(keys), *_strides(values), *_strides(sent), *_spanned(span),
        *NONE, *strides[0], *strides[1], *strides[2],
        *slabs[1:], outer, inner, rows, count, size, wide, factor,
        True, DOTS_WEIGHTS if whole else DOTS_SHARES,
    )  # fmt: skip
    _call(told, running, count)
    return [total.sum(0) if total is not None and total.ndim == 5 else total for total in sums]


def _context(dots: DotArguments) -> Tensor:
    """Room for what is read; it lies as the queries do, if it can: heads side by side, say."""
    queries, wide = dots.queries, dots.values.shape[-1]
    if wide == queries.shape[-1]:
        return torch.empty_like(queries)
    return queries.new_empty(*queries.shape[:-1], wide)


def _forward(dots: DotArguments, context: Tensor, kept: tuple[int, int, int], what: int) -> None:
    queries, keys, values, span, factor = dots
    (outer, inner, rows, size), (count, wide) = queries.shape, values.shape[-2:]
    told = DOTS.pack(
        queries.data_ptr(), keys.data_ptr(), values.data_ptr(), 0, *_places(span),
        context.data_ptr(), *kept, *NONE,
        *_strides(queries), *_strides(keys), *_strides(values), *NONE, *_spanned(span),
        *_strides(context), *NONE, *NONE, *NONE,
        0, 0, outer, inner, rows, count, size, wide, factor, False, what,
    )  # fmt: skip
    _call(told, native.threads(outer * inner * rows * count * (size + wide)), count)


def _call(told: bytes, threads: int, keys: int) -> None:
    if native.built().regard_dots(told, threads):
        raise KernelError(f"there was no memory to read {keys} keys with. Free some.")


def _places(span: tuple[Tensor, Tensor] | None) -> tuple[int, int]:
    return (0, 0) if span is None else (span[0].data_ptr(), span[1].data_ptr())


def _spanned(span: tuple[Tensor, Tensor] | None) -> Strides:
    return NONE if span is None else _strides(span[0])


def _halves(kept: Tensor) -> tuple[int, int]:
    start = kept.data_ptr()
    return start, start + kept.numel() // 2 * kept.element_size()


def _strides(tensor: Tensor) -> Strides:
    """From item to item, along both axes, and from row to row; 0 along an axis that serves all."""
    (outer, inner, rows, _), strides = tensor.shape, tensor.stride()
    return (
        strides[0] if outer > 1 else 0,
        strides[1] if inner > 1 else 0,
        strides[2] if rows > 1 else 0,
    )
