"""Local attention in time linear in the window: only keys in the queries' windows are scored.

With predicted centres each query has a window of its own. With monotonic ones the windows of
neighbours overlap, so that some queries share one that is a little wider.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from regard.attention.core.axes import Context, Values, Weights
from regard.attention.core.gather import gather_rows
from regard.attention.core.numerics import matmul, upcast
from regard.attention.core.records import replace, tree_map
from regard.attention.kernels.comparison import Windows, columns_per_query
from regard.attention.kernels.gathered_matmul import PerColumn, weighted_sum
from regard.attention.kernels.reference import Reference
from regard.attention.kernels.request import EMPTY, Request
from regard.attention.kernels.rule import FixedWindowRule, GaussianWindowRule

BLOCK = 1 << 22
"""How many elements are allocated at once; a larger read is done in blocks of rows."""

QUERIES_PER_WINDOW = 32
"""How many queries share a window if their centres are consecutive keys."""

MAX_KEYS = 1 << 24
"""Indices up to so many are exact in float32, the dtype of the centres."""

OWN_RATIO, SHARED_RATIO = 8, 4
"""A window is faster than all keys if there are so many times as many keys: where each query has
its own window, and where queries share one."""

MIN_KEYS, MIN_PAIRS = 1 << 9, 1 << 11
"""And if all items together have so many keys, and so many pairs."""


class Windowed:
    """Gather the keys in each window, score, select, sum."""

    def refusals(self, request: Request) -> list[str]:
        """Why this request cannot be answered here; empty if it can."""
        reasons = []
        if not isinstance(request.rule, FixedWindowRule | GaussianWindowRule):
            reasons.append(f"selects by {type(request.rule).__name__}, not in a window")
        if request.is_empty:
            reasons.append(EMPTY)
        if request.shape[-1] > MAX_KEYS:
            reasons.append(f"indices of more than {MAX_KEYS} keys are not exact in float32")
        return reasons

    def prefers(self, request: Request) -> bool:
        """Is this faster than the reference? By measurement, on a CPU."""
        if not isinstance(request.rule, FixedWindowRule | GaussianWindowRule):
            return False
        *_, queries, keys = shape = request.shape
        ratio = SHARED_RATIO if _is_consecutive(request) else OWN_RATIO
        narrow = ratio * _width(request.rule, _queries_per_window(request), keys) <= keys
        return narrow and shape.numel() >= max(MIN_PAIRS, MIN_KEYS * queries)

    def __call__(self, request: Request) -> tuple[Context, Weights | None]:
        dtype, request = request.values.dtype, _upcast_if_training(request)
        if _is_consecutive(request) and request.shape[-2] <= QUERIES_PER_WINDOW:
            context, _ = Reference()(request.columns(_slice(request)))
        else:
            context = _in_blocks(request, _context)
        return context.to(dtype), None

    def weights(self, request: Request) -> Weights:
        """The weights of all keys: 0 outside the windows."""
        return request.restore_nan(_in_blocks(_upcast_if_training(request), _scattered_weights))


def _upcast_if_training(request: Request) -> Request:
    """So that a key's gradients from all windows are summed in float32 before they are rounded."""
    if not request.wants_gradient:
        return request
    comparison, values = tree_map(request.comparison, upcast), upcast(request.values)
    return replace(request, comparison=comparison, values=values)


def _in_blocks(request: Request, read: Callable[[Request, int], Tensor]) -> Tensor:
    """Read as many whole windows as fit into a block at a time, then the remaining queries."""
    queries, share = request.shape[-2], _queries_per_window(request)
    # In backward each block allocates a gradient of all values, so it should be as large.
    block = max(BLOCK, request.values.numel()) if request.wants_gradient else BLOCK
    rows = share * max(1, block // (share * _elements_per_query(request, share)))
    whole = queries - queries % share
    if whole == queries <= rows:
        return read(request, queries // share)
    index = torch.arange(queries, device=request.values.device)
    parts = [part for part in (*index[:whole].split(rows), index[whole:]) if len(part)]
    return torch.cat([read(request.rows(part), max(1, len(part) // share)) for part in parts], -2)


def _is_consecutive(request: Request) -> bool:
    """Is each query's centre the key after the last query's?"""
    return isinstance(request.rule, FixedWindowRule) and request.view.pairs.rows is None


def _queries_per_window(request: Request) -> int:
    return min(QUERIES_PER_WINDOW, request.shape[-2]) if _is_consecutive(request) else 1


def _elements_per_query(request: Request, share: int) -> int:
    """How many elements are allocated for one query of all items."""
    assert isinstance(request.rule, FixedWindowRule | GaussianWindowRule)
    *batch, _, keys = request.shape
    width = _width(request.rule, share, keys)
    return torch.Size(batch).numel() * width * request.comparison.gathered_width


def _width(rule: FixedWindowRule | GaussianWindowRule, share: int, keys: int) -> int:
    """The number of keys in a window that so many queries share."""
    return min(2 * rule.window + share, keys)


def _slice(request: Request) -> slice:
    """The one window that all queries share."""
    rule, (*_, queries, keys) = request.rule, request.shape
    assert isinstance(rule, FixedWindowRule)
    width = _width(rule, queries, keys)
    first = min(max(rule.first - rule.window, 0), keys - width)
    return slice(first, first + width)


def _context(request: Request, windows: int) -> Context:
    """The context of so many windows, each of equally many queries."""
    columns = _columns(request, windows)
    weights = request.rule.apply_dropout(_weights(request, columns))
    return _weighted_sums(weights, request.values, columns)


def _scattered_weights(request: Request, windows: int) -> Weights:
    """The weights of so many windows, at their keys among all keys."""
    columns = _columns(request, windows)
    weights = _weights(request, columns)
    index = columns_per_query(columns, weights.shape[-2]).expand(weights.shape)
    empty = weights.new_zeros(*weights.shape[:-1], request.shape[-1])
    return empty.scatter(-1, index, weights)


def _weights(request: Request, columns: Windows) -> PerColumn:
    """The weights in the windows, before dropout."""
    scores = request.comparison.gather(columns)
    pairs = request.view.pairs.at(columns_per_query(columns, scores.shape[-2]))
    allowed = replace(request.view, pairs=pairs).allowed()
    return request.rule.weights(scores, allowed, pairs)


def _columns(request: Request, windows: int) -> Windows:
    """The keys of each window; one that would extend past the ends is shifted inwards."""
    rule, (*batch, queries, keys) = request.rule, request.shape
    assert isinstance(rule, FixedWindowRule | GaussianWindowRule)
    width = _width(rule, queries // windows, keys)
    if isinstance(rule, FixedWindowRule):
        first = request.view.pairs.row_index()[:: queries // windows] + (rule.first - rule.window)
        first = first.reshape(*[1] * len(batch), windows, 1)
    else:
        first = (rule.centres.detach() - rule.window).ceil().long()
    return first.clamp(0, keys - width) + torch.arange(width, device=first.device)


def _weighted_sums(weights: PerColumn, values: Values, columns: Windows) -> Context:
    windows = columns.shape[-2]
    if windows == weights.shape[-2]:
        return weighted_sum(weights, values, columns)
    gathered = upcast(gather_rows(values, columns))  # (*batch, window, column, value_size)
    return matmul(weights.unflatten(-2, (windows, -1)), gathered).flatten(-3, -2)
