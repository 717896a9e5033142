"""A read that raises no questions: plain tensors, a dot product, softmax, nothing hidden.

Of a short read by a fast kernel, the questions that are asked before it are a good part. Here they
are few; whatever is not answered as most are goes the usual way, which knows all errors.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from regard.attention import scores
from regard.attention.kernels import Dot, Request, View, answer, chosen
from regard.attention.kernels.sdpa import READS, scaled
from regard.attention.kernels.whole import LEAST
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
    context, weights = _fused(request, comparison, select.temperature) or answer(request)
    return Reading(context, [Part(request, weights)], State({}, {}, asked[2]))


def _fused(request: Request, dot: Dot, temperature: float) -> tuple[Tensor, None] | None:
    """What torch's fused kernel reads, where it is the quickest; the kernels say where."""
    values, pairs = request.values, request.view.pairs
    if not READS <= pairs.queries * pairs.keys < LEAST[Dot] or dot.keys.shape != values.shape:
        return None
    if dot.factor is not None or chosen() or request.wants_gradient:
        return None
    queries, scale = scaled(dot, temperature)
    return functional.scaled_dot_product_attention(queries, dot.keys, values, scale=scale), None


def _plain(tensor: Tensor) -> bool:
    return (
        type(tensor) is Tensor
        and tensor.dtype == torch.float32
        and tensor.is_cpu
        and tensor.layout == torch.strided
        and not tensor.is_nested
    )
