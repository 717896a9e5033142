"""A read that raises no questions: plain tensors, a dot product, softmax, nothing hidden.

Of a short read by a fast kernel, the questions that are asked before it are a good part. Here they
are few; whatever is not answered as most are goes the usual way, which knows all errors.
"""

from typing import Any

import torch
from torch import Tensor

from regard.attention import scores
from regard.attention.kernels import Dot, Request, View, answer, chosen
from regard.attention.kernels.dots import quicker, read
from regard.attention.looking import in_transform
from regard.attention.masks import Pairs
from regard.attention.reading import Part, Reading
from regard.attention.selection import Softmax
from regard.attention.state import State

SCORES = frozenset({scores.Dot, scores.ScaledDot, scores.Bilinear, scores.Cosine, scores.Location})
"""Those that are dot products; a class of somebody's own may be anything."""


def straight(
    score: Any, select: object, queries: Tensor, keys: Tensor, values: Tensor
) -> Reading | None:
    """What is read without a mask, a bias or a state; None if there is more to be asked."""
    if type(select) is not Softmax or select.dropout or type(score) not in SCORES:
        return None
    if not (_plain(queries) and _plain(keys) and _plain(values)) or in_transform():
        return None
    if torch.compiler.is_compiling() or torch.is_autocast_enabled("cpu"):
        return None
    asked, held = queries.shape, keys.shape
    if len(asked) != 4 or asked[:2] != held[:2] or held[:3] != values.shape[:3]:
        return None
    comparison: Dot = score.compare(queries, score.prepare(keys), {})
    view = View(Pairs(asked[2], held[2], queries.device), None, asked[:2])
    request = Request(comparison, select.bind(queries, view, {}), values, view, {})
    context, weights = _quickly(request, comparison, select.temperature) or answer(request)
    return Reading(context, [Part(request, weights)], State({}, {}, asked[2]))


def _quickly(request: Request, dot: Dot, temperature: float) -> tuple[Tensor, None] | None:
    """What is read in C, where that is the quickest; `dots` says where."""
    values, learns = request.values, request.wants_gradient
    items = dot.queries.shape[0] * dot.queries.shape[1]
    if dot.factor is not None or chosen() or not quicker(dot.keys, values, items, learns=learns):
        return None
    return read(dot.queries, dot.keys, values, None, dot.scale / temperature), None


def _plain(tensor: Tensor) -> bool:
    return (
        type(tensor) is Tensor
        and tensor.dtype == torch.float32
        and tensor.is_cpu
        and tensor.layout == torch.strided
        and not tensor.is_nested
    )
