"""softmax(q kᵀ · factor) v of all pairs, in one call of C, with a gradient.

Scores and weights of a block of rows stay in the cache; all weights are stored only where they take
no more memory than the values. A mask has to be a span of keys for each query.
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
            reasons.append("it takes masks that let each query read a span of the keys")
        return reasons

    def prefers(self, request: Request) -> bool:
        """Is this faster than what torch has? By measurement, with AVX2 or AVX-512."""
        comparison = request.comparison
        if not isinstance(comparison, DotComparison) or torch.compiler.is_compiling():
            return False
        items, learns = request.shape[:-2].numel(), request.wants_gradient
        if is_faster(comparison.keys, request.values, items, learns=learns):
            return True
        return _is_long_read(request, comparison.keys)

    def __call__(self, request: Request) -> tuple[Context, Weights | None]:
        comparison, rule, values = request.comparison, request.rule, request.values
        assert isinstance(comparison, DotComparison)
        assert isinstance(rule, SoftmaxRule)
        queries, scale = comparison.queries, comparison.scale
        if comparison.factor is not None:
            queries, scale = comparison.scaled_queries(), 1.0
        factor = scale / rule.temperature
        if _is_long_read(request, comparison.keys):
            queries, factor = queries * factor, 1.0  # one product less a pair
        return read(queries, comparison.keys, values, _span(request.view), factor), None


def is_faster(keys: Tensor, values: Tensor, items: int, *, learns: bool) -> bool:
    """Is this faster than torch for so many items that read these keys and values?"""
    (count, size), value_size = keys.shape[-2:], values.shape[-1]
    level = loader.level()
    max_keys = MAX_TRAINING_KEYS if learns and level == 2 and loader.is_amd() else MAX_KEYS[level]
    if count > max_keys or size > MAX_SIZE or value_size > MAX_SIZE:
        return False
    # Backward gives each thread whole items.
    return not learns or items >= torch.get_num_threads()


def _same_batch(request: Request) -> bool:
    """Does no item share its keys or values with another?"""
    dot = request.comparison
    assert isinstance(dot, DotComparison)
    return dot.queries.shape[:-2] == dot.keys.shape[:-2] == request.values.shape[:-2]


def _is_long_read(request: Request, keys: Tensor) -> bool:
    """Is this a read of so many pairs that it is faster than torch's, though the keys are many?"""
    (count, size), pairs, level = keys.shape[-2:], request.view.pairs, loader.level()
    if level == 0 or request.view.mask is not None or request.wants_gradient:
        return False
    return (
        MAX_KEYS[level] < count <= MAX_TRANSPOSED_KEYS
        and pairs.height * pairs.width >= MIN_LONG_PAIRS[level]
        and max(size, request.values.shape[-1]) <= MAX_SIZE
    )


def read(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    span: tuple[Tensor, Tensor] | None,
    factor: float,
) -> Context:
    """softmax(q kᵀ · factor) v, where each query reads a span of the keys."""
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
        context = dot_softmax.read(_arguments(queries, keys, values, span, factor))
    return context if len(batch) == 2 else context.view(*batch, *context.shape[-2:])


class _DotRead(torch.autograd.Function):
    """Backward is in C, or that of the plain formula if it needs a gradient itself."""

    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, values: Tensor, *options: Any) -> Tensor:
        args = _arguments(queries, keys, values, *options)
        saves_weights = keys.shape[-2] <= max(SAVED_KEYS, values.shape[-1])
        context, saved = dot_softmax.read_and_save(args, weights=saves_weights)
        ctx.save_for_backward(queries, keys, values, saved)
        ctx.options = options
        return context

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        queries, keys, values, saved = ctx.saved_tensors
        (grad_context,), needed = grads, ctx.needs_input_grad[:3]
        if torch.is_grad_enabled():
            args = dot_softmax.DotArguments(queries, keys, values, *ctx.options)
            return *_differentiable_grads(args, grad_context, needed), None, None
        args = _arguments(queries, keys, values, *ctx.options)
        grad_inputs = dot_softmax.backward(args, saved, _with_unit_stride(grad_context), needed)
        return *grad_inputs, None, None


def _differentiable_grads(
    args: dot_softmax.DotArguments, grad_context: Tensor, needed: Sequence[bool]
) -> list[Tensor | None]:
    """The gradients of the inputs, by plain PyTorch, with gradients of their own."""
    allowed, index = None, torch.arange(args.keys.shape[-2])
    if args.span is not None:
        allowed = (args.span[0] <= index) & (index < args.span[1])
    context = naive_attention(*args[:3], allowed, args.factor, causal=False)
    sources = [tensor for tensor, each in zip(args[:3], needed, strict=True) if each]
    grads = iter(torch.autograd.grad(context, sources, grad_context, create_graph=True))
    return [next(grads) if each else None for each in needed]


def _arguments(
    queries: Tensor, keys: Tensor, values: Tensor, *options: Any
) -> dot_softmax.DotArguments:
    return dot_softmax.DotArguments(
        _with_unit_stride(queries), _with_unit_stride(keys), _with_unit_stride(values), *options
    )


def _with_unit_stride(tensor: Tensor) -> Tensor:
    """The tensor with a last stride of 1."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def _span(view: View) -> tuple[Tensor, Tensor] | None:
    """The span of keys that the mask lets each query read; None if it lets them read others."""
    if view.mask is None or view.pairs.columns is not None:
        return None
    if view.cache.span is None:
        span = view.mask.span(view.pairs)
        view.cache.span = None if span is None else _expand_span(span, view.pairs.height)
    return view.cache.span


def _expand_span(span: tuple[Tensor, Tensor], rows: int) -> tuple[Tensor, Tensor]:
    """The span as two tensors `(outer, inner, row, 1)`."""
    first, end = torch.broadcast_tensors(*map(_as_4d, span))
    first, end = (t.expand(*t.shape[:2], rows, 1).long().contiguous() for t in (first, end))
    return first, end


def _as_4d(tensor: Tensor) -> Tensor:
    return tensor.reshape(*[1] * (4 - tensor.ndim), *tensor.shape)
