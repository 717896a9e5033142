"""A read that raises no questions: plain tensors, a dot product, softmax, nothing hidden.

Of a short read by a fast kernel, the questions that are asked before it are a good part. Here they
are few; whatever is not answered as most are goes the usual way, which knows all errors.
"""

from typing import Any

import torch
from torch import Tensor

from regard.attention import scores
from regard.attention.core.tracing import in_functorch
from regard.attention.kernels import (
    DotComparison,
    Request,
    View,
    dispatch,
    dot_softmax,
    is_overridden,
)
from regard.attention.masks import PairIndex
from regard.attention.reading import Part, Reading
from regard.attention.selection import Softmax
from regard.attention.state import State

DOT_SCORES = frozenset(
    {scores.Dot, scores.ScaledDot, scores.Bilinear, scores.Cosine, scores.Location}
)
"""Those that are dot products; a class of somebody's own may be anything."""


def plain_dot(
    score: Any, select: object, queries: Tensor, keys: Tensor, values: Tensor
) -> Reading | None:
    """What is read without a mask, a bias or a state; None if there is more to be asked."""
    if type(select) is not Softmax or select.dropout or type(score) not in DOT_SCORES:
        return None
    if not (_plain(queries) and _plain(keys) and _plain(values)) or in_functorch():
        return None
    if torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu"):
        return None
    asked, held, read = queries.shape, keys.shape, values.shape
    if len(asked) not in (3, 4) or asked[:-2] != held[:-2] or held[:-1] != read[:-1]:
        return None
    if 0 in asked or 0 in held or 0 in read:
        return None
    comparison: DotComparison = score.compare(queries, score.prepare(keys), {})
    view = View(PairIndex(asked[-2], held[-2], queries.device), None, asked[:-2])
    request = Request(comparison, select.bind(queries, view, {}), values, view, {})
    context, weights = _read_in_c(request, comparison, select.temperature) or dispatch(request)
    part = Part(request, weights)
    part.version = comparison.version
    return Reading(context, [part], State({}, {}, asked[-2]))


def _read_in_c(
    request: Request, dot: DotComparison, temperature: float
) -> tuple[Tensor, None] | None:
    """What is read in C, where that is the quickest; `dots` says where."""
    values, learns = request.values, request.wants_gradient
    items = dot.queries.shape[:-2].numel()
    if (
        dot.factor is not None
        or is_overridden()
        or not dot_softmax.is_faster(dot.keys, values, items, learns=learns)
    ):
        return None
    return dot_softmax.read(dot.queries, dot.keys, values, None, dot.scale / temperature), None


def _plain(tensor: Tensor) -> bool:
    return (
        type(tensor) is Tensor
        and tensor.dtype == torch.float32
        and tensor.is_cpu
        and tensor.layout == torch.strided
        and not tensor.is_nested
    )
