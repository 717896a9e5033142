"""Additive scores in Triton, for a GPU: tiles of queries × keys × hidden units.

A program holds one tile in its registers, adds up along the axis that it walks, and sums once at
the end. No two programs write to the same place, so that a result is the same each time. Nothing is
traded for speed: products are in IEEE float32, not TF32, and tanh is a real one.
"""

from typing import no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

from regard.attention.kernels.additive_backends import AdditiveInputs, MaskBias, SharedBatch

TILE = {"QUERIES": 16, "KEYS": 16, "UNITS": 16}
"""Sides of a tile: 4,096 numbers, 32 for each thread of four warps."""

WIDEST = 256
"""How many numbers a value may have for its sum to stay in registers."""

# Kernels are Triton's language, not Python's: `no_type_check` keeps checkers of either from them.


NEAR = tl.constexpr(0.625)
"""Below which |x| tanh x is a polynomial."""


@triton.jit
@no_type_check
def _halves(x):
    """e^−2|x|, which never overflows, and 1 / (1 + e^−2|x|): tanh and its slope need both."""
    fallen = tl.exp(-2.0 * tl.abs(x))
    return fallen, 1.0 / (1.0 + fallen)


@triton.jit
@no_type_check
def _tanh(x, fallen, share):
    """Tanh of x, as exact as a library's."""
    far = 1.0 - 2.0 * fallen * share
    # Near 0 that difference cancels: there a polynomial serves, that of Cephes' tanhf.
    square = tl.minimum(x * x, 1.0)
    near = square * -5.70498872745e-3 + 2.06390887954e-2
    near = square * near - 5.37397155531e-2
    near = square * near + 1.33314422036e-1
    near = square * near - 3.33332819422e-1
    near = x * square * near + x
    return tl.where(tl.abs(x) < NEAR, near, tl.where(x < 0, -far, far))


@triton.jit
@no_type_check
def _slope(x, height, fallen, share):
    """1 − tanh² x, whose height is given; far from 0 that difference cancels."""
    far = 4.0 * fallen * share * share
    return tl.where(tl.abs(x) < NEAR, 1.0 - height * height, far)


@triton.jit
@no_type_check
def _vectors(start, places, count, units, hidden):
    """Some units of some vectors, 0 outside."""
    there = (places < count)[:, None] & (units < hidden)[None, :]
    return tl.load(start + places[:, None] * hidden + units[None, :], there, 0.0)


@triton.jit
@no_type_check
def _pairs(start, rows, row_count, columns, column_count, row_stride, column_stride):
    """What a tile of pairs has in a tensor that may be shared along either axis, 0 outside."""
    there = (rows < row_count)[:, None] & (columns < column_count)[None, :]
    places = rows[:, None] * row_stride + columns[None, :] * column_stride
    return tl.load(start + places, there, 0)


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
        own = _vectors(queries, rows, row_count, units, hidden)
        x = own[:, None, :] + _vectors(keys, columns, key_count, units, hidden)[None, :, :]
        factor = tl.load(v + units, units < hidden, 0.0)
        fallen, share = _halves(x)
        total += factor[None, None, :] * _tanh(x, fallen, share)
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
    there = (rows < row_count)[:, None] & (columns < key_count)[None, :]
    to = scores + (item * row_count + rows[:, None]) * key_count + columns[None, :]
    tl.store(to, found, there)


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
    highest = tl.full((QUERIES,), float("-inf"), tl.float32)
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
        seen = (columns < key_count)[None, :]
        if allowed is not None:
            here = _pairs(allowed, rows, row_count, columns, key_count, allowed_row, allowed_column)
            seen = seen & (here != 0)
        found = tl.where(seen, found, float("-inf"))
        higher = tl.maximum(highest, tl.max(found, 1))
        # A row that has seen nothing yet has no highest score, and −inf − (−inf) is NaN.
        base = tl.where(higher == float("-inf"), 0.0, higher)
        faded, weights = tl.exp(highest - base), tl.exp(found - base[:, None])
        mass = mass * faded + tl.sum(weights, 1)
        part = _vectors(values, columns, key_count, parts, size)
        total = total * faded[:, None] + tl.dot(weights, part, input_precision="ieee")
        highest = higher
    # Nothing to read: no mass, and the sum is exactly 0.
    total = total / tl.where(mass == 0.0, 1.0, mass)[:, None]
    to = context + (item * row_count + rows[:, None]) * size + parts[None, :]
    tl.store(to, total, (rows < row_count)[:, None] & (parts < size)[None, :])


@triton.jit
@no_type_check
def _to_queries(
    queries, keys, v, which, sent, to_queries, to_v, row_count, key_count, hidden, stride,
    QUERIES: tl.constexpr, KEYS: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """What scores send to queries, and to v from each tile of rows."""
    across, down = tl.cdiv(hidden, UNITS), tl.cdiv(row_count, QUERIES)
    tile = tl.program_id(0)
    item, strip = (tile // (across * down)).to(tl.int64), tile // across % down
    rows = strip.to(tl.int64) * QUERIES + tl.arange(0, QUERIES)
    units = tile % across * UNITS + tl.arange(0, UNITS)
    queries, to_queries = queries + item * stride, to_queries + item * stride
    keys += tl.load(which + item) * key_count * hidden
    sent += item * row_count * key_count
    own = _vectors(queries, rows, row_count, units, hidden)
    slopes = tl.zeros((QUERIES, KEYS, UNITS), tl.float32)
    heights = tl.zeros((QUERIES, KEYS, UNITS), tl.float32)
    for start in range(0, key_count, KEYS):
        columns = (start + tl.arange(0, KEYS)).to(tl.int64)
        x = own[:, None, :] + _vectors(keys, columns, key_count, units, hidden)[None, :, :]
        weight = _pairs(sent, rows, row_count, columns, key_count, key_count, 1)[:, :, None]
        fallen, share = _halves(x)
        height = _tanh(x, fallen, share)
        slopes += weight * _slope(x, height, fallen, share)
        heights += weight * height
    factor = tl.load(v + item * hidden + units, units < hidden, 0.0)
    there = (rows < row_count)[:, None] & (units < hidden)[None, :]
    to = to_queries + rows[:, None] * hidden + units[None, :]
    tl.store(to, factor[None, :] * tl.sum(slopes, 1), there)
    to = to_v + (item * down + strip) * hidden + units
    tl.store(to, tl.sum(tl.sum(heights, 1), 0), units < hidden)


@triton.jit
@no_type_check
def _to_keys(
    queries, keys, v, which, sent, to_keys, row_count, key_count, hidden, stride,
    QUERIES: tl.constexpr, KEYS: tl.constexpr, UNITS: tl.constexpr,
):  # fmt: skip
    """Add what scores send to each item's keys."""
    across, down = tl.cdiv(hidden, UNITS), tl.cdiv(key_count, KEYS)
    tile = tl.program_id(0)
    item = (tile // (across * down)).to(tl.int64)
    columns = (tile // across % down).to(tl.int64) * KEYS + tl.arange(0, KEYS)
    units = tile % across * UNITS + tl.arange(0, UNITS)
    queries, sent = queries + item * stride, sent + item * row_count * key_count
    keys += tl.load(which + item) * key_count * hidden
    own = _vectors(keys, columns, key_count, units, hidden)
    slopes = tl.zeros((QUERIES, KEYS, UNITS), tl.float32)
    for start in range(0, row_count, QUERIES):
        rows = (start + tl.arange(0, QUERIES)).to(tl.int64)
        x = _vectors(queries, rows, row_count, units, hidden)[:, None, :] + own[None, :, :]
        weight = _pairs(sent, rows, row_count, columns, key_count, key_count, 1)[:, :, None]
        fallen, share = _halves(x)
        slopes += weight * _slope(x, _tanh(x, fallen, share), fallen, share)
    factor = tl.load(v + item * hidden + units, units < hidden, 0.0)
    there = (columns < key_count)[:, None] & (units < hidden)[None, :]
    to = to_keys + (item * key_count + columns[:, None]) * hidden + units[None, :]
    tl.store(to, tl.load(to, there, 0.0) + factor[None, :] * tl.sum(slopes, 0), there)


def scores(problem: AdditiveInputs, rows: slice) -> Tensor:
    """Scores `(item, row, key)` of these rows."""
    queries = problem.queries[:, rows]
    items, count, hidden = queries.shape
    keys = problem.keys.shape[-2]
    found = queries.new_empty(items, count, keys)
    with torch.cuda.device_of(queries):
        _scores[_tiles(items, (count, "QUERIES"), (keys, "KEYS"))](
            queries, problem.keys, problem.v, problem.which, found,
            count, keys, hidden, queries.stride(0), **TILE,
        )  # fmt: skip
    return found


def read(problem: AdditiveInputs, rows: slice, values: SharedBatch, sight: MaskBias) -> Tensor:
    """The context `(item, row, size)` of these rows, under their own part of mask and bias."""
    queries = problem.queries[:, rows]
    items, count, hidden = queries.shape
    keys, size = values.tensor.shape[-2:]
    context = queries.new_empty(items, count, size)
    with torch.cuda.device_of(queries):
        _read[_tiles(items, (count, "QUERIES"))](
            queries, problem.keys, problem.v, problem.which,
            values.tensor.contiguous(), values.which, context,
            *_laid_out(sight.allowed), *_laid_out(sight.bias),
            sight.temperature, count, keys, hidden, size, queries.stride(0),
            **TILE, SIZE=max(16, triton.next_power_of_2(size)),
        )  # fmt: skip
    return context


def backward(
    problem: AdditiveInputs, rows: slice, sent: Tensor, sums: tuple[Tensor, Tensor, Tensor]
) -> None:
    """Add what the gradient of these rows' scores sends to queries, each item's keys, and v."""
    queries, to_queries = problem.queries[:, rows], sums[0][:, rows]
    items, count, hidden = queries.shape
    keys = problem.keys.shape[-2]
    to_v = queries.new_empty(items, triton.cdiv(count, TILE["QUERIES"]), hidden)
    given = queries, problem.keys, problem.v, problem.which, sent
    sizes = count, keys, hidden, queries.stride(0)
    with torch.cuda.device_of(queries):
        grid = _tiles(items, (count, "QUERIES"), (hidden, "UNITS"))
        _to_queries[grid](*given, to_queries, to_v, *sizes, **TILE)
        grid = _tiles(items, (keys, "KEYS"), (hidden, "UNITS"))
        _to_keys[grid](*given, sums[1], *sizes, **TILE)
    sums[2].add_(to_v.sum(1))


def _tiles(items: int, *axes: tuple[int, str]) -> tuple[int]:
    """How many programs there are: so many tiles along each axis, for each item."""
    for length, side in axes:
        items *= triton.cdiv(length, TILE[side])
    return (items,)


def _laid_out(shared: SharedBatch | None) -> tuple[Tensor | None, Tensor | None, int, int]:
    """The tensor, where each item's part of it starts, and its strides: 0 where all share it."""
    if shared is None:
        return None, None, 0, 0
    tensor = shared.tensor.contiguous()
    rows, columns = tensor.shape[-2:]
    starts = shared.which * (rows * columns)
    return tensor, starts, columns if rows > 1 else 0, 1 if columns > 1 else 0
