"""Dot products of all pairs, selected by softmax and read, in one call in C, with a gradient.

Scores and weights of a block of rows stay in the cache; all weights are held only where they take
no more room than the values. A mask has to be a span of keys for each query.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from regard.attention.core.axes import Context, Weights
from regard.attention.core.numerics import broadcast_batch
from regard.attention.kernels.comparison import DotComparison
from regard.attention.kernels.request import EMPTY, Request, View
from regard.attention.kernels.rule import SoftmaxRule
from regard.attention.kernels.sdpa_autograd import naive_attention
from regard.attention.kernels.squared_distances import MAX_TRANSPOSED_KEYS
from regard.native import dot_softmax, loader
from regard.native.eligibility import refusals

MAX_SIZE, MAX_KEYS, MAX_TRAINING_KEYS = 256, (0, 192, 512), 4096
"""Up to so long vectors and so many keys, by `loader.LEVELS`, this is the fastest kernel; up to so
many with a gradient on AMD's processors with AVX-512, where torch's backward is slower."""

MIN_LONG_PAIRS = (0, 1 << 15, 1 << 18)
"""It is for more keys, too, without a gradient or a mask, if an item has so many pairs."""

SAVED_KEYS = 64
"""Weights of up to so many keys are saved for backward, or of as many as a value has elements: they
take no more memory than the values, and computing them again takes longer."""


class DotSoftmax:
    """Softmax of dot products, forward and backward, in C where it is usable."""

    def refusals(self, request: Request) -> list[str]:
        """Why this request cannot be answered here; empty if it can."""
        comparison, view = request.comparison, request.view
        if not isinstance(comparison, DotComparison):
            return [f"scores by {type(comparison).__name__} are not dot products"]
        reasons = refusals(comparison.queries, comparison.keys, request.values)
        if not isinstance(request.rule, SoftmaxRule) or request.rule.dropout:
            reasons.append("it selects by softmax, without dropout")
        if comparison.bias is not None:
            reasons.append("it takes no bias")
        if request.is_empty:
            reasons.append(EMPTY)
        elif len(request.shape) > 4 and not (view.mask is None and _same_batch(request)):
            reasons.append("it takes at most two batch axes, if items share keys or have a mask")
        elif view.pairs.columns is not None or (view.mask is not None and _span(view) is None):
            reasons.append("it takes masks that show each query a span of the keys")
        return reasons

    def prefers(self, request: Request) -> bool:
        """Is this quicker than what torch has? By measurement, where there are wide vectors."""
        comparison = request.comparison
        if not isinstance(comparison, DotComparison) or torch.compiler.is_compiling():
            return False
        items, learns = request.shape[:-2].numel(), request.wants_gradient
        if is_faster(comparison.keys, request.values, items, learns=learns):
            return True
        return not learns and request.view.mask is None and _is_long(request, comparison.keys)

    def __call__(self, request: Request) -> tuple[Context, Weights | None]:
        comparison, rule, values = request.comparison, request.rule, request.values
        assert isinstance(comparison, DotComparison)
        assert isinstance(rule, SoftmaxRule)
        queries, scale = comparison.queries, comparison.scale
        if comparison.factor is not None:
            queries, scale = comparison.scaled_queries(), 1.0
        factor = scale / rule.temperature
        return read(queries, comparison.keys, values, _span(request.view), factor), None


def is_faster(keys: Tensor, values: Tensor, items: int, *, learns: bool) -> bool:
    """Would so many items read these more quickly here than by what torch has?"""
    (count, size), wide = keys.shape[-2:], values.shape[-1]
    level = loader.level()
    longest = MAX_TRAINING_KEYS if learns and level == 2 and loader.is_amd() else MAX_KEYS[level]
    if count > longest or size > MAX_SIZE or wide > MAX_SIZE:
        return False
    # The way back gives each thread whole items.
    return not learns or items >= torch.get_num_threads()


def _same_batch(request: Request) -> bool:
    """Has every item keys and values of its own?"""
    dot = request.comparison
    assert isinstance(dot, DotComparison)
    return dot.queries.shape[:-2] == dot.keys.shape[:-2] == request.values.shape[:-2]


def _is_long(request: Request, keys: Tensor) -> bool:
    """Are there so many pairs that this is faster than torch, though the keys are many?"""
    pairs, level = request.view.pairs, loader.level()
    size = max(keys.shape[-1], request.values.shape[-1])
    few = level == 0 or pairs.height * pairs.width < MIN_LONG_PAIRS[level]
    return not few and size <= MAX_SIZE and keys.shape[-2] <= MAX_TRANSPOSED_KEYS


def read(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    span: tuple[Tensor, Tensor] | None,
    factor: float,
) -> Context:
    """softmax(q kᵀ · factor) v, of which each query sees a span of the keys."""
    batch: tuple[int, ...] = queries.shape[:-2]
    if len(batch) > 2:
        queries, keys, values = (each.flatten(0, -4) for each in (queries, keys, values))
    elif not (len(batch) == 2 and keys.shape[:-2] == values.shape[:-2] == batch):
        batch = broadcast_batch(broadcast_batch(batch, keys.shape[:-2]), values.shape[:-2])
        queries = _as_4d(queries.expand(*batch, *queries.shape[-2:]))
        keys, values = _as_4d(keys), _as_4d(values)
    context: Tensor
    if torch.is_grad_enabled() and (
        queries.requires_grad or keys.requires_grad or values.requires_grad
    ):
        context = _DotRead.apply(queries, keys, values, span, factor)  # type: ignore[no-untyped-call]
    else:
        context = dot_softmax.read(_contiguous_rows(queries, keys, values, span, factor))
    return context if len(batch) == 2 else context.view(*batch, *context.shape[-2:])


class _DotRead(torch.autograd.Function):
    """Its backward is in C; if that is to have a gradient, too, it is the plain formula's."""

    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, values: Tensor, *more: Any) -> Tensor:
        dots = _contiguous_rows(queries, keys, values, *more)
        few = keys.shape[-2] <= max(SAVED_KEYS, values.shape[-1])
        context, kept = dot_softmax.read_and_save(dots, weights=few)
        ctx.save_for_backward(queries, keys, values, kept)
        ctx.more = more
        return context

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys, values, kept = ctx.saved_tensors
        (sent,), wanted = gradients, ctx.needs_input_grad[:3]
        if torch.is_grad_enabled():
            dots = dot_softmax.DotArguments(queries, keys, values, *ctx.more)
            return *_plainly(dots, sent, wanted), None, None
        dots = _contiguous_rows(queries, keys, values, *ctx.more)
        return (
            *dot_softmax.backward(dots, kept, _is_contiguous_row(sent), wanted),
            None,
            None,
        )


def _plainly(
    dots: dot_softmax.DotArguments, sent: Tensor, wanted: Sequence[bool]
) -> list[Tensor | None]:
    """The gradients, by a formula that can be differentiated again."""
    allowed, places = None, torch.arange(dots.keys.shape[-2])
    if dots.span is not None:
        allowed = (dots.span[0] <= places) & (places < dots.span[1])
    plain = naive_attention(*dots[:3], allowed, dots.factor, causal=False)
    needed = [tensor for tensor, asked in zip(dots[:3], wanted, strict=True) if asked]
    found = iter(torch.autograd.grad(plain, needed, sent, create_graph=True))
    return [next(found) if asked else None for asked in wanted]


def _contiguous_rows(
    queries: Tensor, keys: Tensor, values: Tensor, *more: Any
) -> dot_softmax.DotArguments:
    return dot_softmax.DotArguments(
        _is_contiguous_row(queries), _is_contiguous_row(keys), _is_contiguous_row(values), *more
    )


def _is_contiguous_row(tensor: Tensor) -> Tensor:
    """The tensor with the numbers of a vector one after another."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def _span(view: View) -> tuple[Tensor, Tensor] | None:
    """The span of keys that its mask shows each query; None if that is not all of it."""
    if view.mask is None or view.pairs.columns is not None:
        return None
    if view.cache.span is None:
        span = view.mask.span(view.pairs)
        view.cache.span = None if span is None else _expand_span(span, view.pairs.height)
    return view.cache.span


def _expand_span(span: tuple[Tensor, Tensor], rows: int) -> tuple[Tensor, Tensor]:
    """The span with both axes of items, and a number for each row."""
    first, end = torch.broadcast_tensors(*map(_as_4d, span))
    first, end = (t.expand(*t.shape[:2], rows, 1).long().contiguous() for t in (first, end))
    return first, end


def _as_4d(tensor: Tensor) -> Tensor:
    return tensor.reshape(*[1] * (4 - tensor.ndim), *tensor.shape)
