"""One query an item with a gradient, as a decoder trains: each step's read is one call of C.

Gradients of keys, values and weights are deferred to the end of backward: see `deferred_grad`.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.attention.core.axes import Context, Weights
from regard.attention.core.deferred_grad import (
    MatmulGrads,
    SumGrad,
    attach,
    is_deferring,
    once_per_loop,
)
from regard.attention.core.errors import KernelError
from regard.attention.kernels.additive import AdditiveKernel
from regard.attention.kernels.comparison import DotComparison
from regard.attention.kernels.packed_memory import PackedMemory, SingleQueryComparison
from regard.attention.kernels.request import Request
from regard.attention.kernels.rule import SoftmaxRule
from regard.attention.kernels.single_query import SingleQuery
from regard.native import single_query


class DeferredSingleQuery:
    """Dot products and additive scores of one query an item with a gradient, in C if it was built.

    Beyond the range of additive scores in C their usual kernel answers.
    """

    def refusals(self, request: Request) -> list[str]:
        """Why this request cannot be answered here; empty if it can."""
        comparison = request.comparison
        if not is_deferring():
            return ["it is for reads within kernels.deferred_gradients()"]
        if isinstance(comparison, DotComparison) and comparison.factor is not None:
            return ["it takes dot products without a learned factor"]
        with torch.no_grad():
            reasons = SingleQuery().refusals(request)
        if reasons:
            return reasons
        assert request.view.cache.packed is not None
        memory = request.view.cache.packed.memory
        alone = memory.items_per_keys == memory.items_per_values == 1
        return [] if alone else ["each item needs keys and values of its own"]

    def prefers(self, request: Request) -> bool:
        """Wherever gradients are deferred."""
        return is_deferring() and request.wants_gradient and request.shape[-2] == 1

    def __call__(self, request: Request) -> tuple[Context, Weights | None]:
        comparison, rule, packed = request.comparison, request.rule, request.view.cache.packed
        assert isinstance(comparison, SingleQueryComparison)
        assert isinstance(rule, SoftmaxRule)
        assert packed is not None
        step = _Step(packed, comparison, rule.temperature)
        if not step.in_range:
            return AdditiveKernel()(request)
        values = once_per_loop(_with_matmul_grads, request.values)
        context: Tensor
        if isinstance(comparison, DotComparison):
            keys = once_per_loop(_with_matmul_grads, comparison.keys)
            context = _DotStep.apply(comparison.queries, *keys, *values, step)  # type: ignore[no-untyped-call]
        else:
            sums = once_per_loop(_with_sum_grad, comparison.keys)
            context = _AdditiveStep.apply(comparison.queries, comparison.v, *sums, *values, step)  # type: ignore[no-untyped-call]
        return context, None


def _with_matmul_grads(tensor: Tensor) -> tuple[Tensor, MatmulGrads]:
    """The tensor as this loop reads it, and where its gradient is collected."""
    grads = MatmulGrads()
    return attach(tensor, grads), grads


def _with_sum_grad(tensor: Tensor) -> tuple[Tensor, SumGrad]:
    """The same of a tensor whose gradient is no product."""
    grad = SumGrad(tensor)
    return attach(tensor, grad), grad


class _Step:
    """One step's read, forward done; C reads keys and values again in backward."""

    def __init__(
        self, packed: PackedMemory, comparison: SingleQueryComparison, temperature: float
    ) -> None:
        queries = comparison.queries
        self.packed, self.scale, self.v = packed, 1 / temperature, None
        if isinstance(comparison, DotComparison):
            self.scale = comparison.scale / temperature
        else:
            self.v = packed.contiguous_v(comparison)
        self.weights = queries.new_empty(*packed.shape)
        context = queries.new_empty(*packed.context_shape)
        self.in_range = single_query.step(
            packed.memory, queries, self.v, self.scale, self.weights, context, packed.work
        )
        self.contexts = [context]

    def checked_memory(self) -> PackedMemory:
        """The memory that was read, for backward; raise if its tensors were replaced."""
        if not self.packed.is_valid():
            raise KernelError(
                "the keys or values of a step in kernels.deferred_gradients() were replaced "
                "before its gradient was computed. Call backward first, or give the memory a copy "
                "of them."
            )
        return self.packed

    def pop_context(self) -> Tensor:
        """The context, once: a node that held its own output would never be freed."""
        return self.contexts.pop()


class _DotStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        queries, keys, ctx.key_grads, values, ctx.value_grads, ctx.step = inputs
        ctx.save_for_backward(queries, keys, values)
        context: Tensor = ctx.step.pop_context()
        return context

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_context: Tensor) -> tuple[Tensor | None, ...]:
        queries, _, _ = ctx.saved_tensors
        grad_context, weights = grad_context.contiguous(), ctx.step.weights
        packed = ctx.step.checked_memory()
        grad_scores, grad_queries = torch.empty_like(weights), torch.empty_like(queries)
        single_query.step_backward(
            packed.memory, grad_context, weights, ctx.step.scale, grad_scores, grad_queries,
            packed.work,
        )  # fmt: skip
        if ctx.needs_input_grad[1]:
            ctx.key_grads.add(grad_scores, queries)
        if ctx.needs_input_grad[3]:
            ctx.value_grads.add(weights, grad_context)
        return grad_queries, *[None] * 5


class _AdditiveStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        queries, v, keys, ctx.key_grad, values, ctx.value_grads, ctx.step = inputs
        ctx.save_for_backward(queries, v, keys, values)
        context: Tensor = ctx.step.pop_context()
        return context

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_context: Tensor) -> tuple[Tensor | None, ...]:
        queries, v, _, _ = ctx.saved_tensors
        grad_context, step = grad_context.contiguous(), ctx.step
        packed = step.checked_memory()
        grad_queries, grad_v = single_query.additive_step_backward(
            packed.memory, (queries, step.v), grad_context, step.weights, step.scale,
            ctx.key_grad.sum(packed.memory.width), packed.work,
        )  # fmt: skip
        if ctx.needs_input_grad[4]:
            ctx.value_grads.add(step.weights, grad_context)
        grad_v = grad_v[:, : v.shape[-1]].view(queries.shape).sum_to_size(v.shape)
        return grad_queries, grad_v, *[None] * 5
