"""One query an item, as a decoder asks at each step: scores, softmax and sum in one call.

For so little work, to call an operation takes longer than to compute it, and so does every check:
what was found out about a memory is kept in the view of it. Without a gradient only.
"""

from itertools import takewhile
from typing import Any

import torch
from torch import Tensor

from regard.attention.core.axes import Context, Weights
from regard.attention.kernels.additive import AdditiveKernel
from regard.attention.kernels.comparison import AdditiveComparison, DotComparison
from regard.attention.kernels.request import EMPTY, Request
from regard.attention.kernels.rule import SoftmaxRule
from regard.native import single_query
from regard.native.eligibility import refusals, usable
from regard.native.signatures import StepMemory

KINDS = (DotComparison, AdditiveComparison)

KEYS = 1 << 12
"""Up to so many keys; a longer memory is worth torch's own threads and sums."""


class SingleQuery:
    """Dot products and additive scores of one query an item, in C where it was built."""

    def refusals(self, request: Request) -> list[str]:
        """Why this request cannot be answered here; empty if it can."""
        comparison, rule = request.comparison, request.rule
        if not isinstance(comparison, KINDS):
            return [f"scores by {type(comparison).__name__} are neither dot products nor additive"]
        known: PackedMemory | None = request.view.cache.get(SingleQuery)
        if known is not None and known.serves(comparison, request):
            reasons = []
        else:
            reasons = _of_memory(comparison, request)
        if type(rule) is not SoftmaxRule or rule.dropout:
            reasons.append("it selects by softmax, without dropout")
        if comparison.bias is not None:
            reasons.append("it takes no bias")
        if request.wants_gradient:
            reasons.append("it has no gradient")
        if not usable(comparison.queries, contiguous=True):
            reasons.append("it takes queries of contiguous float32 on a CPU")
        return reasons

    def repeats(self, request: Request) -> bool:
        """Is this a read without a gradient like one that was answered here before?"""
        known: PackedMemory | None = request.view.cache.get(SingleQuery)
        comparison: Any = request.comparison  # of the kind that it was, as `serves` sees
        rule = request.rule
        return (
            known is not None
            and known.serves(comparison, request)
            and type(rule) is SoftmaxRule
            and not rule.dropout
            and comparison.bias is None
            and usable(comparison.queries, contiguous=True)
        )

    def prefers(self, request: Request) -> bool:
        """Always: it does in one call what takes others several."""
        return request.view.pairs.height == 1 and not torch.is_grad_enabled()

    def __call__(self, request: Request) -> tuple[Context, Weights | None]:
        comparison, rule = request.comparison, request.rule
        known: PackedMemory = request.view.cache[SingleQuery]
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
            queries, v = comparison.queries, known.own_v(comparison)
        # Sizes one by one: torch takes twice as long to read them from a tuple.
        weights, context = queries.new_empty(*known.shape), queries.new_empty(*known.context_shape)
        if single_query.step(known.memory, queries, v, scale, weights, context, known.work):
            return context, weights
        return AdditiveKernel()(request)


class PackedMemory:
    """A memory in the form that C reads, and what it was made of."""

    def __init__(self, comparison: DotComparison | AdditiveComparison, request: Request) -> None:
        values, allowed = request.values, request.view.allowed()
        self.kind, self.values, self.mask = type(comparison), values, request.view.mask
        self.keys, self.queries_shape = comparison.keys, comparison.queries.shape
        self.keys_at, self.values_at = comparison.keys.data_ptr(), values.data_ptr()
        self.keys_count, self.values_count = comparison.keys.numel(), values.numel()
        self.shape = comparison.shape
        self.context_shape = (*self.shape[:-1], values.shape[-1])
        self.one_v = (
            isinstance(comparison, AdditiveComparison)
            and comparison.v.numel() == comparison.v.shape[-1]
        )
        keys, reach = _as_compared(comparison, request), request.cached.get("reach")
        allowed = None if allowed is None else allowed.expand(self.shape).contiguous()
        self.held = keys, allowed, reach  # C is told where they are, and cannot hold them
        items = self.shape[:-2].numel()
        self.work = self.shape.numel() * (keys.shape[-1] + values.shape[-1])
        self.memory = StepMemory(
            keys=keys.data_ptr(),
            values=values.data_ptr(),
            max_abs=None if reach is None else reach.data_ptr(),
            allowed=None if allowed is None else allowed.data_ptr(),
            items=items,
            count=self.shape[-1],
            size=comparison.queries.shape[-1],
            width=keys.shape[-1],
            value_size=values.shape[-1],
            items_per_keys=items // keys.shape[:-2].numel(),
            items_per_values=items // values.shape[:-2].numel(),
            items_per_v=items if self.one_v else 1,
        )

    def own_v(self, comparison: AdditiveComparison) -> Tensor:
        """The vector of additive scores: one for all, or one for each query."""
        v = comparison.v
        return v if self.one_v else v.expand_as(comparison.queries).contiguous()

    def serves(self, comparison: DotComparison | AdditiveComparison, request: Request) -> bool:
        """Is it the very memory that this was made for, and are the queries of the same shape?"""
        return (
            type(comparison) is self.kind
            and comparison.keys is self.keys
            and request.values is self.values
            and request.view.mask is self.mask
            and comparison.queries.shape == self.queries_shape
            and self.stands()
        )

    def stands(self) -> bool:
        """Do keys and values lie where C was told, as many and in line?

        Not after `values.data = …`, `values.share_memory_()` and the like.
        """
        keys, values = self.keys, self.values
        return (
            keys.data_ptr() == self.keys_at
            and values.data_ptr() == self.values_at
            and keys.numel() == self.keys_count
            and values.numel() == self.values_count
            and keys.is_contiguous()
            and values.is_contiguous()
        )


def _of_memory(comparison: DotComparison | AdditiveComparison, request: Request) -> list[str]:
    """Why it cannot read this memory; if it can, that is kept."""
    queries, values, reasons = comparison.queries, request.values, []
    if not usable():
        return refusals()
    if isinstance(comparison, AdditiveComparison) and not _cached(comparison, request):
        return ["nothing was kept of these keys"]
    keys = _as_compared(comparison, request)
    if request.is_empty:
        return [EMPTY]
    if queries.shape[-2] != 1 or values.shape[-2] > KEYS:
        reasons.append(f"it is for one query an item, and for up to {KEYS} keys")
    elif not (_shared(queries, keys) and _shared(queries, values)):
        reasons.append("neighbours may share a memory, and no other items of a batch")
    if not usable(keys, values, contiguous=True):
        reasons.append("it takes keys and values of contiguous float32 on a CPU")
    if not reasons:
        request.view.cache[SingleQuery] = PackedMemory(comparison, request)
    return reasons


def _cached(comparison: AdditiveComparison, request: Request) -> bool:
    """Are these keys those that were prepared? Those of a score that looks back are not."""
    kept = request.cached.get("e^2k")
    return kept is not None and kept.shape[:-1] == comparison.keys.shape[:-1]


def _as_compared(comparison: DotComparison | AdditiveComparison, request: Request) -> Tensor:
    """The keys in the form that scores are computed from."""
    return comparison.keys if isinstance(comparison, DotComparison) else request.cached["e^2k"]


def _shared(queries: Tensor, own: Tensor) -> bool:
    """Has each item its own, or do neighbours share: the same batch, but for ones at its end?"""
    batch, given = queries.shape[:-2], own.shape[:-2]
    same = len([*takewhile(lambda pair: pair[0] == pair[1], zip(batch, given, strict=True))])
    return all(size == 1 for size in given[same:])
