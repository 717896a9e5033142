"""One query an item, as at each step of a decoder: scores, softmax and sum in one call of C.

For so little work, calling an operation takes longer than computing it, and so does every check:
the memory is packed once, and cached in the view. Without a gradient only.
"""

from typing import Any

import torch

from regard.attention.core.axes import Context, Weights
from regard.attention.kernels.additive import AdditiveKernel
from regard.attention.kernels.comparison import AdditiveComparison, DotComparison
from regard.attention.kernels.packed_memory import (
    PackedMemory,
    SingleQueryComparison,
    is_shared_in_order,
    keys_in_c,
)
from regard.attention.kernels.request import EMPTY, Request
from regard.attention.kernels.rule import SoftmaxRule
from regard.native import single_query
from regard.native.eligibility import refusals, usable

MAX_KEYS = 1 << 12
"""A longer memory is worth torch's own threads and sums."""


class SingleQuery:
    """Dot products and additive scores of one query an item, in C where it was built."""

    def refusals(self, request: Request) -> list[str]:
        """Why this request cannot be answered here; empty if it can."""
        comparison, rule = request.comparison, request.rule
        if not isinstance(comparison, SingleQueryComparison):
            return [f"scores by {type(comparison).__name__} are neither dot products nor additive"]
        packed = request.view.cache.packed
        if packed is not None and packed.serves(comparison, request.values, request.view.mask):
            reasons = refusals(comparison.queries, contiguous=True)
        else:
            reasons = _pack(comparison, request)
        if type(rule) is not SoftmaxRule or rule.dropout:
            reasons.append("it selects by softmax, without dropout")
        if comparison.bias is not None:
            reasons.append("it takes no bias")
        if request.wants_gradient:
            reasons.append("it has no gradient")
        return reasons

    def repeats(self, request: Request) -> bool:
        """Is this a read without a gradient like one that was answered here before?"""
        packed = request.view.cache.packed
        comparison: Any = request.comparison  # of the kind that it was, as `serves` checks
        rule = request.rule
        return (
            packed is not None
            and packed.serves(comparison, request.values, request.view.mask)
            and type(rule) is SoftmaxRule
            and not rule.dropout
            and comparison.bias is None
            and comparison.queries.dtype == torch.float32
            and comparison.queries.is_contiguous()
        )

    def prefers(self, request: Request) -> bool:
        """Always, if it selects by softmax: it does in one call what takes others several."""
        softmax = type(request.rule) is SoftmaxRule
        return softmax and request.view.pairs.height == 1 and not torch.is_grad_enabled()

    def __call__(self, request: Request) -> tuple[Context, Weights | None]:
        comparison, rule = request.comparison, request.rule
        packed = request.view.cache.packed
        assert packed is not None
        assert isinstance(rule, SoftmaxRule)
        v, scale = None, 1 / rule.temperature
        if isinstance(comparison, DotComparison):
            queries = comparison.queries
            if comparison.factor is None:
                scale *= comparison.scale
            else:
                queries = comparison.scaled_queries()
        else:
            assert isinstance(comparison, AdditiveComparison)
            queries, v = comparison.queries, packed.contiguous_v(comparison)
        # Sizes one by one: torch takes twice as long to read them from a tuple.
        weights = queries.new_empty(*packed.shape)
        context = queries.new_empty(*packed.context_shape)
        if single_query.step(packed.memory, queries, v, scale, weights, context, packed.work):
            return context, weights
        return AdditiveKernel()(request)


def _pack(comparison: SingleQueryComparison, request: Request) -> list[str]:
    """Why this memory cannot be read here; if it can, it is packed, and cached in the view."""
    queries, values, reasons = comparison.queries, request.values, []
    if not usable():
        return refusals()
    if isinstance(comparison, AdditiveComparison) and not _is_cached(comparison, request):
        return ["nothing is cached of these keys"]
    keys = keys_in_c(comparison, request.cached)
    if request.is_empty:
        return [EMPTY]
    if queries.shape[-2] != 1 or values.shape[-2] > MAX_KEYS:
        reasons.append(f"it is for one query an item, and for up to {MAX_KEYS} keys")
    elif not (is_shared_in_order(queries, keys) and is_shared_in_order(queries, values)):
        reasons.append("neighbours may share a memory, and no other items of a batch")
    reasons += refusals(queries, keys, values, contiguous=True)
    if not reasons:
        view = request.view
        view.cache.packed = PackedMemory(
            comparison, values, view.mask, view.allowed(), request.cached
        )
    return reasons


def _is_cached(comparison: AdditiveComparison, request: Request) -> bool:
    """Are these keys those that were prepared? Those of a stateful score are not."""
    cached = request.cached.get("e^2k")
    return cached is not None and cached.shape[:-1] == comparison.keys.shape[:-1]
