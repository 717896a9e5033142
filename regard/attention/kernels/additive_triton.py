"""Additive scores in Triton, for a GPU: tiles of queries × keys × hidden units.

A program has one tile in its registers, accumulates along one axis, and reduces once at the end. No
two programs write to the same address, so that results are deterministic. Nothing is traded for
speed: products are in IEEE float32, not TF32, and tanh is a real one.
"""

from typing import no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

from regard.attention.kernels.additive_backends import AdditiveInputs, MaskBias, SharedBatch

TILE = {"QUERIES": 16, "KEYS": 16, "UNITS": 16}
"""Sides of a tile: 4,096 elements, 32 for each thread of four warps."""

MAX_VALUE_SIZE = 256
"""Up to this size a sum of values stays in registers."""

# Kernels are in Triton's language, not in Python: `no_type_check` keeps type checkers away.


POLYNOMIAL_BELOW = tl.constexpr(0.625)
"""For |x| below, tanh x is a polynomial."""


@triton.jit
@no_type_check
def _exp_and_sigmoid(x):
    """e^−2|x|, which never overflows, and 1 / (1 + e^−2|x|): tanh and its slope need both."""
    exponential = tl.exp(-2.0 * tl.abs(x))
    return exponential, 1.0 / (1.0 + exponential)


@triton.jit
@no_type_check
def _tanh(x, exponential, sigmoid):
    """Tanh of x, as exact as a library's."""
    far = 1.0 - 2.0 * exponential * sigmoid
    # Near 0 that difference cancels: for small |x| it is a polynomial, that of Cephes' tanhf.
    square = tl.minimum(x * x, 1.0)
    near = square * -5.70498872745e-3 + 2.06390887954e-2
    near = square * near - 5.37397155531e-2
    near = square * near + 1.33314422036e-1
    near = square * near - 3.33332819422e-1
    near = x * square * near + x
    return tl.where(tl.abs(x) < POLYNOMIAL_BELOW, near, tl.where(x < 0, -far, far))


@triton.jit
@no_type_check
def _tanh_slope(x, tanh, exponential, sigmoid):
    """1 − tanh² x, by its tanh; far from 0 that difference cancels."""
    far = 4.0 * exponential * sigmoid * sigmoid
    return tl.where(tl.abs(x) < POLYNOMIAL_BELOW, 1.0 - tanh * tanh, far)


@triton.jit
@no_type_check
def _vectors(start, offsets, count, units, hidden):
    """Some units of some vectors, 0 out of bounds."""
    in_bounds = (offsets < count)[:, None] & (units < hidden)[None, :]
    return tl.load(start + offsets[:, None] * hidden + units[None, :], in_bounds, 0.0)


@triton.jit
@no_type_check
def _pairs(start, rows, row_count, columns, column_count, row_stride, column_stride):
    """A tile of pairs of a tensor that may broadcast along either axis, 0 out of bounds."""
    in_bounds = (rows < row_count)[:, None] & (columns < column_count)[None, :]
    offsets = rows[:, None] * row_stride + columns[None, :] * column_stride
    return tl.load(start + offsets, in_bounds, 0)


@triton.jit
@no_type_check
def _tile_scores(
    queries, keys, v, rows, row_count, columns, key_count, hidden,
    QUERIES: tl.constexpr, KEYS: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """vᵀ tanh(q + k) of a tile of pairs."""
    total = tl.zeros((QUERIES, KEYS, UNITS), tl.float32)
    for start in range(0, hidden, UNITS):
        units = start + tl.arange(0, UNITS)
        vectors = _vectors(queries, rows, row_count, units, hidden)
        x = vectors[:, None, :] + _vectors(keys, columns, key_count, units, hidden)[None, :, :]
        factor = tl.load(v + units, units < hidden, 0.0)
        exponential, sigmoid = _exp_and_sigmoid(x)
        total += factor[None, None, :] * _tanh(x, exponential, sigmoid)
    return tl.sum(total, 2)


@triton.jit
@no_type_check
def _scores(
    queries, keys, v, which, scores, row_count, key_count, hidden, stride,
    QUERIES: tl.constexpr, KEYS: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """Scores `(item, row, key)`: a program for each tile of pairs."""
    across, down = tl.cdiv(key_count, KEYS), tl.cdiv(row_count, QUERIES)
    tile = tl.program_id(0)
    item = (tile // (across * down)).to(tl.int64)
    rows = (tile // across % down).to(tl.int64) * QUERIES + tl.arange(0, QUERIES)
    columns = (tile % across).to(tl.int64) * KEYS + tl.arange(0, KEYS)
    memory = tl.load(which + item)
    found = _tile_scores(
        queries + item * stride, keys + memory * key_count * hidden, v + item * hidden,
        rows, row_count, columns, key_count, hidden, QUERIES, KEYS, UNITS,
    )  # fmt: skip
    in_bounds = (rows < row_count)[:, None] & (columns < key_count)[None, :]
    to = scores + (item * row_count + rows[:, None]) * key_count + columns[None, :]
    tl.store(to, found, in_bounds)


@triton.jit
@no_type_check
def _read(
    queries, keys, v, which, values, which_values, context,
    allowed, which_allowed, allowed_row, allowed_column,
    bias, which_bias, bias_row, bias_column,
    temperature, row_count, key_count, hidden, size, stride,
    QUERIES: tl.constexpr, KEYS: tl.constexpr, UNITS: tl.constexpr, SIZE: tl.constexpr,
):  # fmt: skip
    """The context `(item, row, size)`: a program for each tile of rows goes along all keys."""
    down = tl.cdiv(row_count, QUERIES)
    item = (tl.program_id(0) // down).to(tl.int64)
    rows = (tl.program_id(0) % down).to(tl.int64) * QUERIES + tl.arange(0, QUERIES)
    parts = tl.arange(0, SIZE)
    queries, v = queries + item * stride, v + item * hidden
    keys += tl.load(which + item) * key_count * hidden
    values += tl.load(which_values + item) * key_count * size
    if allowed is not None:
        allowed += tl.load(which_allowed + item)
    if bias is not None:
        bias += tl.load(which_bias + item)
    running_max = tl.full((QUERIES,), float("-inf"), tl.float32)
    mass = tl.zeros((QUERIES,), tl.float32)
    total = tl.zeros((QUERIES, SIZE), tl.float32)
    for start in range(0, key_count, KEYS):
        columns = (start + tl.arange(0, KEYS)).to(tl.int64)
        found = _tile_scores(
            queries, keys, v, rows, row_count, columns, key_count, hidden, QUERIES, KEYS, UNITS
        )
        if bias is not None:
            found += _pairs(bias, rows, row_count, columns, key_count, bias_row, bias_column)
        found = found / temperature
        visible = (columns < key_count)[None, :]
        if allowed is not None:
            permitted = _pairs(
                allowed, rows, row_count, columns, key_count, allowed_row, allowed_column
            )
            visible = visible & (permitted != 0)
        found = tl.where(visible, found, float("-inf"))
        new_max = tl.maximum(running_max, tl.max(found, 1))
        # A row without a visible key yet has no maximum, and −inf − (−inf) is NaN.
        base = tl.where(new_max == float("-inf"), 0.0, new_max)
        decay, weights = tl.exp(running_max - base), tl.exp(found - base[:, None])
        mass = mass * decay + tl.sum(weights, 1)
        part = _vectors(values, columns, key_count, parts, size)
        total = total * decay[:, None] + tl.dot(weights, part, input_precision="ieee")
        running_max = new_max
    # An empty row has no mass, and its sum is exactly 0.
    total = total / tl.where(mass == 0.0, 1.0, mass)[:, None]
    to = context + (item * row_count + rows[:, None]) * size + parts[None, :]
    tl.store(to, total, (rows < row_count)[:, None] & (parts < size)[None, :])


@triton.jit
@no_type_check
def _query_gradients(
    queries, keys, v, which, grad_scores, grad_queries, grad_v,
    row_count, key_count, hidden, stride,
    QUERIES: tl.constexpr, KEYS: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """The gradients of queries, and of v for each tile of rows."""
    across, down = tl.cdiv(hidden, UNITS), tl.cdiv(row_count, QUERIES)
    tile = tl.program_id(0)
    item, strip = (tile // (across * down)).to(tl.int64), tile // across % down
    rows = strip.to(tl.int64) * QUERIES + tl.arange(0, QUERIES)
    units = tile % across * UNITS + tl.arange(0, UNITS)
    queries, grad_queries = queries + item * stride, grad_queries + item * stride
    keys += tl.load(which + item) * key_count * hidden
    grad_scores += item * row_count * key_count
    vectors = _vectors(queries, rows, row_count, units, hidden)
    slopes = tl.zeros((QUERIES, KEYS, UNITS), tl.float32)
    tanhs = tl.zeros((QUERIES, KEYS, UNITS), tl.float32)
    for start in range(0, key_count, KEYS):
        columns = (start + tl.arange(0, KEYS)).to(tl.int64)
        x = vectors[:, None, :] + _vectors(keys, columns, key_count, units, hidden)[None, :, :]
        weight = _pairs(grad_scores, rows, row_count, columns, key_count, key_count, 1)[:, :, None]
        exponential, sigmoid = _exp_and_sigmoid(x)
        tanh = _tanh(x, exponential, sigmoid)
        slopes += weight * _tanh_slope(x, tanh, exponential, sigmoid)
        tanhs += weight * tanh
    factor = tl.load(v + item * hidden + units, units < hidden, 0.0)
    in_bounds = (rows < row_count)[:, None] & (units < hidden)[None, :]
    to = grad_queries + rows[:, None] * hidden + units[None, :]
    tl.store(to, factor[None, :] * tl.sum(slopes, 1), in_bounds)
    to = grad_v + (item * down + strip) * hidden + units
    tl.store(to, tl.sum(tl.sum(tanhs, 1), 0), units < hidden)


@triton.jit
@no_type_check
def _key_gradients(
    queries, keys, v, which, grad_scores, grad_keys, row_count, key_count, hidden, stride,
    QUERIES: tl.constexpr, KEYS: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """Add to the gradients of each item's keys."""
    across, down = tl.cdiv(hidden, UNITS), tl.cdiv(key_count, KEYS)
    tile = tl.program_id(0)
    item = (tile // (across * down)).to(tl.int64)
    columns = (tile // across % down).to(tl.int64) * KEYS + tl.arange(0, KEYS)
    units = tile % across * UNITS + tl.arange(0, UNITS)
    queries, grad_scores = queries + item * stride, grad_scores + item * row_count * key_count
    keys += tl.load(which + item) * key_count * hidden
    vectors = _vectors(keys, columns, key_count, units, hidden)
    slopes = tl.zeros((QUERIES, KEYS, UNITS), tl.float32)
    for start in range(0, row_count, QUERIES):
        rows = (start + tl.arange(0, QUERIES)).to(tl.int64)
        x = _vectors(queries, rows, row_count, units, hidden)[:, None, :] + vectors[None, :, :]
        weight = _pairs(grad_scores, rows, row_count, columns, key_count, key_count, 1)[:, :, None]
        exponential, sigmoid = _exp_and_sigmoid(x)
        slopes += weight * _tanh_slope(x, _tanh(x, exponential, sigmoid), exponential, sigmoid)
    factor = tl.load(v + item * hidden + units, units < hidden, 0.0)
    in_bounds = (columns < key_count)[:, None] & (units < hidden)[None, :]
    to = grad_keys + (item * key_count + columns[:, None]) * hidden + units[None, :]
    tl.store(to, tl.load(to, in_bounds, 0.0) + factor[None, :] * tl.sum(slopes, 0), in_bounds)


def scores(inputs: AdditiveInputs, rows: slice) -> Tensor:
    """Scores `(item, row, key)` of these rows."""
    queries = inputs.queries[:, rows]
    items, count, hidden = queries.shape
    keys = inputs.keys.shape[-2]
    found = queries.new_empty(items, count, keys)
    with torch.cuda.device_of(queries):
        _scores[_tiles(items, (count, "QUERIES"), (keys, "KEYS"))](
            queries, inputs.keys, inputs.v, inputs.which, found,
            count, keys, hidden, queries.stride(0), **TILE,
        )  # fmt: skip
    return found


def read(inputs: AdditiveInputs, rows: slice, values: SharedBatch, mask_bias: MaskBias) -> Tensor:
    """The context `(item, row, size)` of these rows, with their part of mask and bias."""
    queries = inputs.queries[:, rows]
    items, count, hidden = queries.shape
    keys, size = values.tensor.shape[-2:]
    context = queries.new_empty(items, count, size)
    with torch.cuda.device_of(queries):
        _read[_tiles(items, (count, "QUERIES"))](
            queries, inputs.keys, inputs.v, inputs.which,
            values.tensor.contiguous(), values.which, context,
            *_with_strides(mask_bias.allowed), *_with_strides(mask_bias.bias),
            mask_bias.temperature, count, keys, hidden, size, queries.stride(0),
            **TILE, SIZE=max(16, triton.next_power_of_2(size)),
        )  # fmt: skip
    return context


def backward(
    inputs: AdditiveInputs, rows: slice, grad_scores: Tensor, grads: tuple[Tensor, Tensor, Tensor]
) -> None:
    """Add to the gradients of queries, each item's keys and v, by that of these rows' scores."""
    queries, grad_queries = inputs.queries[:, rows], grads[0][:, rows]
    items, count, hidden = queries.shape
    keys = inputs.keys.shape[-2]
    grad_v = queries.new_empty(items, triton.cdiv(count, TILE["QUERIES"]), hidden)
    pointers = queries, inputs.keys, inputs.v, inputs.which, grad_scores
    sizes = count, keys, hidden, queries.stride(0)
    with torch.cuda.device_of(queries):
        grid = _tiles(items, (count, "QUERIES"), (hidden, "UNITS"))
        _query_gradients[grid](*pointers, grad_queries, grad_v, *sizes, **TILE)
        grid = _tiles(items, (keys, "KEYS"), (hidden, "UNITS"))
        _key_gradients[grid](*pointers, grads[1], *sizes, **TILE)
    grads[2].add_(grad_v.sum(1))


def _tiles(items: int, *axes: tuple[int, str]) -> tuple[int]:
    """The number of programs: so many tiles along each axis, for each item."""
    for length, side in axes:
        items *= triton.cdiv(length, TILE[side])
    return (items,)


def _with_strides(shared: SharedBatch | None) -> tuple[Tensor | None, Tensor | None, int, int]:
    """The tensor, where each item's part of it starts, and its strides: 0 where it broadcasts."""
    if shared is None:
        return None, None, 0, 0
    tensor = shared.tensor.contiguous()
    rows, columns = tensor.shape[-2:]
    starts = shared.which * (rows * columns)
    return tensor, starts, columns if rows > 1 else 0, 1 if columns > 1 else 0
