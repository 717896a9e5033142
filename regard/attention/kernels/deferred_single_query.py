"""One query an item, step by step, as a decoder learns: each step's read is one call of C.

What the steps send to keys, values and weights is put off, see `owed`. That needs to be told of, by
`loop`, for it has a gradient of the first order only, which must be asked for once, for all steps.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.attention.core.axes import Context, Weights
from regard.attention.core.errors import KernelError
from regard.attention.kernels.additive import AdditiveKernel
from regard.attention.kernels.comparison import AdditiveComparison, DotComparison
from regard.attention.kernels.deferred_grad import DeferredWeight, MatmulGrads, SumGrad, attach
from regard.attention.kernels.request import Request
from regard.attention.kernels.rule import SoftmaxRule
from regard.attention.kernels.single_query import PackedMemory, SingleQuery
from regard.native import single_query

Made = TypeVar("Made")


class _DeferredScope(threading.local):
    """The loop that this thread is in, if any: what was made of each tensor that steps use."""

    made: "dict[tuple[Any, int], tuple[Tensor, Any]] | None" = None


_scope = _DeferredScope()


@contextmanager
def deferred_gradients() -> Iterator[None]:
    """Reads of one query in here are steps whose gradients will be asked for once, all together.

    with kernels.deferred_gradients():
        for query in queries:
            state = step(state, attention.read(query, memory))
    """
    before, _scope.made = _scope.made, {}
    try:
        yield
    finally:
        _scope.made = before


def _once(make: Callable[[Tensor], Made], tensor: Tensor) -> Made:
    """What is made of a tensor, once a loop."""
    assert _scope.made is not None
    place = make, id(tensor)
    if place not in _scope.made:
        # The tensor itself is held, too: as long as it lives nobody else has its number.
        _scope.made[place] = tensor, make(tensor)
    found: Made = _scope.made[place][1]
    return found


def _defer(tensor: Tensor) -> tuple[Tensor, MatmulGrads]:
    """The tensor as this loop reads it, and the products that will be owed to it."""
    owed = MatmulGrads()
    return attach(tensor, owed), owed


def _added_to(tensor: Tensor) -> tuple[Tensor, SumGrad]:
    """The same of a tensor whose gradient is no product."""
    owed = SumGrad(tensor)
    return attach(tensor, owed), owed


def deferred_weight(weight: Tensor) -> DeferredWeight | None:
    """A weight as the steps of a loop use it; None outside of one, and where nothing is learned."""
    if _scope.made is None or not (torch.is_grad_enabled() and weight.requires_grad):
        return None
    return _once(DeferredWeight, weight)


class DeferredSingleQuery:
    """Dot products and additive scores of one query an item with a gradient, in C if it was built.

    Beyond the range of additive scores in C their usual kernel answers.
    """

    def refusals(self, request: Request) -> list[str]:
        """Why this request cannot be answered here; empty if it can."""
        comparison = request.comparison
        if _scope.made is None:
            return ["it is for reads within kernels.deferred_gradients()"]
        if isinstance(comparison, DotComparison) and comparison.factor is not None:
            return ["it takes dot products without a factor that learns"]
        with torch.no_grad():
            reasons = SingleQuery().refusals(request)
        if not reasons:
            known: PackedMemory = request.view.cache[SingleQuery]
            if known.memory.items_per_keys != 1 or known.memory.items_per_values != 1:
                reasons.append("each item needs keys and values of its own")
        return reasons

    def prefers(self, request: Request) -> bool:
        """Wherever it is told of."""
        return _scope.made is not None and request.wants_gradient and request.shape[-2] == 1

    def __call__(self, request: Request) -> tuple[Context, Weights | None]:
        comparison, rule = request.comparison, request.rule
        assert isinstance(comparison, DotComparison | AdditiveComparison)
        assert isinstance(rule, SoftmaxRule)
        asked = _PendingRead(request.view.cache[SingleQuery], comparison, rule.temperature)
        if not asked.answered:
            return AdditiveKernel()(request)
        values = _once(_defer, request.values)
        context: Tensor
        if isinstance(comparison, DotComparison):
            keys = _once(_defer, comparison.keys)
            context = _DeferredRead.apply(comparison.queries, *keys, *values, asked)  # type: ignore[no-untyped-call]
        else:
            sums = _once(_added_to, comparison.keys)
            context = _AdditiveRead.apply(comparison.queries, comparison.v, *sums, *values, asked)  # type: ignore[no-untyped-call]
        return context, None


class _PendingRead:
    """One step, asked and answered; C reads keys and values again on the way back."""

    def __init__(
        self,
        known: PackedMemory,
        comparison: DotComparison | AdditiveComparison,
        temperature: float,
    ) -> None:
        queries = comparison.queries
        self.known, self.scale, self.v = known, 1 / temperature, None
        if isinstance(comparison, DotComparison):
            self.scale = comparison.scale / temperature
        else:
            self.v = known.own_v(comparison)
        self.weights = queries.new_empty(*known.shape)
        context = queries.new_empty(*known.context_shape)
        self.answered = single_query.step(
            known.memory, queries, self.v, self.scale, self.weights, context, known.work
        )
        self.found = [context]

    def memory(self) -> PackedMemory:
        """What was read from, for the backward; raise if it lies elsewhere by now."""
        if not self.known.stands():
            raise KernelError(
                "the keys or values of a step in kernels.deferred_gradients() were replaced "
                "before its gradient was computed. Call backward first, or give the memory a copy "
                "of them."
            )
        return self.known

    def context(self) -> Tensor:
        """What was read, once: a node that held its own result would never be freed."""
        return self.found.pop()


class _DeferredRead(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        queries, keys, ctx.to_keys, values, ctx.to_values, ctx.asked = given
        ctx.save_for_backward(queries, keys, values)
        context: Tensor = ctx.asked.context()
        return context

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, sent: Tensor) -> tuple[Tensor | None, ...]:
        queries, _, _ = ctx.saved_tensors
        sent, weights, known = sent.contiguous(), ctx.asked.weights, ctx.asked.memory()
        to_scores, to_queries = torch.empty_like(weights), torch.empty_like(queries)
        single_query.step_backward(
            known.memory, sent, weights, ctx.asked.scale, to_scores, to_queries, known.work
        )
        if ctx.needs_input_grad[1]:
            ctx.to_keys.add(to_scores, queries)
        if ctx.needs_input_grad[3]:
            ctx.to_values.add(weights, sent)
        return to_queries, *[None] * 5


class _AdditiveRead(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        queries, v, keys, ctx.to_keys, values, ctx.to_values, ctx.asked = given
        ctx.save_for_backward(queries, v, keys, values)
        context: Tensor = ctx.asked.context()
        return context

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, sent: Tensor) -> tuple[Tensor | None, ...]:
        queries, v, _, _ = ctx.saved_tensors
        sent, asked, known = sent.contiguous(), ctx.asked, ctx.asked.memory()
        to_queries, to_v = single_query.additive_step_backward(
            known.memory, (queries, asked.v), sent, asked.weights, asked.scale,
            ctx.to_keys.sum(known.memory.width), known.work,
        )  # fmt: skip
        if ctx.needs_input_grad[4]:
            ctx.to_values.add(asked.weights, sent)
        to_v = to_v[:, : v.shape[-1]].view(queries.shape).sum_to_size(v.shape)
        return to_queries, to_v, *[None] * 5
