"""Local attention at the cost of what it reads: only keys in the queries' windows are scored.

Around a centre, each query has a window of its own, wherever that lies. Along the keys, neighbours
have most of theirs in common, so some queries share one that is a little wider.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from regard.attention.core.axes import Context, Values, Weights
from regard.attention.core.gather import gather_rows
from regard.attention.core.numerics import matmul, upcast
from regard.attention.core.records import replace, tree_map
from regard.attention.kernels.comparison import Windows, for_each
from regard.attention.kernels.gathered_matmul import Own, weighted_sum
from regard.attention.kernels.reference import Reference
from regard.attention.kernels.request import EMPTY, Request
from regard.attention.kernels.rule import FixedWindowRule, GaussianWindowRule

BLOCK = 1 << 22
"""How many numbers are held at once; a larger read is taken in blocks of rows."""

SHARE = 32
"""How many queries share a window along the keys."""

EXACT = 1 << 24
"""Among so many keys each place is a whole number in float32, in which centres are."""

NARROW, SHARED = 8, 4
"""A window is quicker than all keys if these are so many times as many: where each query has its
own, and where they share."""

KEYS, PAIRS = 1 << 9, 1 << 11
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
        if request.shape[-1] > EXACT:
            reasons.append(f"places among more than {EXACT} keys are not exact")
        return reasons

    def prefers(self, request: Request) -> bool:
        """Is this quicker than the reference? By measurement, on a CPU."""
        if not isinstance(request.rule, FixedWindowRule | GaussianWindowRule):
            return False
        *_, queries, keys = shape = request.shape
        times = SHARED if _in_order(request) else NARROW
        narrow = times * _width(request.rule, _share(request), keys) <= keys
        return narrow and shape.numel() >= max(PAIRS, KEYS * queries)

    def __call__(self, request: Request) -> tuple[Context, Weights | None]:
        dtype, request = request.values.dtype, _widened(request)
        if _in_order(request) and request.shape[-2] <= SHARE:
            context, _ = Reference()(request.columns(_slice(request)))
        else:
            context = _in_blocks(request, _context)
        return context.to(dtype), None

    def weights(self, request: Request) -> Weights:
        """The weights of all keys: 0 outside the windows, where nothing is scored."""
        return request.restore_nan(_in_blocks(_widened(request), _spread_out))


def _widened(request: Request) -> Request:
    """What all windows send to a key is summed before it is rounded."""
    if not request.wants_gradient:
        return request
    comparison, values = tree_map(request.comparison, upcast), upcast(request.values)
    return replace(request, comparison=comparison, values=values)


def _in_blocks(request: Request, read: Callable[[Request, int], Tensor]) -> Tensor:
    """Read in whole windows, as many as fit into a block, and what is left over."""
    queries, share = request.shape[-2], _share(request)
    # Each block has a gradient of all values: it is made worth that much.
    block = max(BLOCK, request.values.numel()) if request.wants_gradient else BLOCK
    some = share * max(1, block // (share * _held(request, share)))
    whole = queries - queries % share
    if whole == queries <= some:
        return read(request, queries // share)
    index = torch.arange(queries, device=request.values.device)
    parts = [part for part in (*index[:whole].split(some), index[whole:]) if len(part)]
    found = [read(request.rows(part), max(1, len(part) // share)) for part in parts]
    return torch.cat(found, -2)


def _in_order(request: Request) -> bool:
    """Does each query stand one key after the one before it?"""
    return isinstance(request.rule, FixedWindowRule) and request.view.pairs.rows is None


def _share(request: Request) -> int:
    """How many queries share a window."""
    return min(SHARE, request.shape[-2]) if _in_order(request) else 1


def _held(request: Request, share: int) -> int:
    """How many numbers are held for one query of all items."""
    assert isinstance(request.rule, FixedWindowRule | GaussianWindowRule)
    *batch, _, keys = request.shape
    width = _width(request.rule, share, keys)
    return torch.Size(batch).numel() * width * request.comparison.own_width


def _width(rule: FixedWindowRule | GaussianWindowRule, share: int, keys: int) -> int:
    """How many keys are in a window that so many queries share."""
    return min(2 * rule.window + share, keys)


def _slice(request: Request) -> slice:
    """The one window that all queries share."""
    rule, (*_, queries, keys) = request.rule, request.shape
    assert isinstance(rule, FixedWindowRule)
    width = _width(rule, queries, keys)
    first = min(max(rule.first - rule.window, 0), keys - width)
    return slice(first, first + width)


def _context(request: Request, windows: int) -> Context:
    """What is read in so many windows, each for as many queries."""
    columns = _columns(request, windows)
    weights = request.rule.apply_dropout(_weights(request, columns))
    return _sums(weights, request.values, columns)


def _spread_out(request: Request, windows: int) -> Weights:
    """The weights in so many windows, where they lie among all keys."""
    columns = _columns(request, windows)
    weights = _weights(request, columns)
    places = for_each(columns, weights.shape[-2]).expand(weights.shape)
    empty = weights.new_zeros(*weights.shape[:-1], request.shape[-1])
    return empty.scatter(-1, places, weights)


def _weights(request: Request, columns: Windows) -> Own:
    """The weights in the windows, before dropout."""
    scores = request.comparison.gather(columns)
    pairs = request.view.pairs.at(for_each(columns, scores.shape[-2]))
    allowed = replace(request.view, pairs=pairs).allowed()
    return request.rule.weights(scores, allowed, pairs)


def _columns(request: Request, windows: int) -> Windows:
    """Which keys are in each window; one that would reach past the ends is moved inwards."""
    rule, (*batch, queries, keys) = request.rule, request.shape
    assert isinstance(rule, FixedWindowRule | GaussianWindowRule)
    width = _width(rule, queries // windows, keys)
    if isinstance(rule, FixedWindowRule):
        first = request.view.pairs.row_index()[:: queries // windows] + (rule.first - rule.window)
        first = first.reshape(*[1] * len(batch), windows, 1)
    else:
        first = (rule.centres.detach() - rule.window).ceil().long()
    return first.clamp(0, keys - width) + torch.arange(width, device=first.device)


def _sums(weights: Own, values: Values, columns: Windows) -> Context:
    windows = columns.shape[-2]
    if windows == weights.shape[-2]:
        return weighted_sum(weights, values, columns)
    own = upcast(gather_rows(values, columns))  # (*batch, window, column, value_size)
    return matmul(weights.unflatten(-2, (windows, -1)), own).flatten(-3, -2)
