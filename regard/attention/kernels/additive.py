"""Reads by additive scores that never allocate a hidden vector for each pair.

With softmax the read is fused, in blocks of rows: neither the hidden vectors of all pairs nor all
weights are ever stored, and backward computes them again. Any other selection gets its scores from
the same kernel.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from regard.attention.core.axes import Context, Prepared, Scores, Weights
from regard.attention.core.numerics import matmul, softmax, upcast
from regard.attention.core.tracing import in_functorch
from regard.attention.kernels import triton_loader
from regard.attention.kernels.additive_backends import (
    AdditiveInputs,
    Backend,
    MaskBias,
    ReadsContext,
    backend,
    exponentials,
    fits_cache,
    shared_batch,
)
from regard.attention.kernels.additive_op import additive_scores
from regard.attention.kernels.comparison import AdditiveComparison, Comparison, take
from regard.attention.kernels.reference import blockwise
from regard.attention.kernels.request import EMPTY, Request, View
from regard.attention.kernels.rule import SoftmaxRule
from regard.native.eligibility import usable

BLOCK = 1 << 20
"""How many weights are allocated at once."""

BLOCK_ON_GPU = 1 << 24
"""The same on a GPU, whose thousands of threads need work."""

SAVED_WEIGHTS = 1 << 22
"""Up to how many weights are saved for backward, rather than computed again."""


class AdditiveKernel:
    """Additive scores: in C where it is usable, by Triton on a GPU, else in PyTorch in chunks."""

    def cache_keys(self, kind: type[Comparison], prepared: Prepared) -> Mapping[str, Tensor]:
        """e^2k of each key, and its largest |k|: then a step computes the query's alone."""
        if kind is not AdditiveComparison or not usable():
            return {}
        keys = upcast(prepared["keys"].detach())
        if not usable(keys):
            return {}
        exp_keys, max_abs = exponentials(keys)
        # For each key, as everything in a memory is, so that it is written and erased with it.
        return {"e^2k": exp_keys, "max|k|": exp_keys.new_full((*exp_keys.shape[:-1], 1), max_abs)}

    def can_skip_cache(self, kind: type[Comparison], prepared: Prepared) -> bool:
        """Few exponentials are computed on the fly, in the processor's cache."""
        return kind is AdditiveComparison and fits_cache(prepared["keys"])

    def refusals(self, request: Request) -> list[str]:
        """Why this request cannot be answered here; empty if it can."""
        comparison, reasons = request.comparison, []
        if not isinstance(comparison, AdditiveComparison):
            return [f"scores by {type(comparison).__name__} are not additive"]
        device = comparison.keys.device
        if device.type == "cuda" and not triton_loader.serves(comparison.keys):
            reasons.append("on a GPU it needs Triton, which was not found; it is in regard[gpu]")
        elif device.type not in ("cpu", "cuda"):
            reasons.append(f"it is for a CPU or a CUDA device, and the keys are on {device}")
        if comparison.dtype == torch.float64:
            reasons.append("float64 is left to the reference")
        if request.is_empty:
            reasons.append(EMPTY)
        if not torch.compiler.is_compiling() and in_functorch():
            reasons.append("inside vmap or another torch.func transform")
        return reasons

    def prefers(self, request: Request) -> bool:
        """Always: a hidden vector for each pair is slower from the first pair on."""
        return isinstance(request.comparison, AdditiveComparison)

    def __call__(self, request: Request) -> tuple[Context, Weights | None]:
        comparison = request.comparison
        assert isinstance(comparison, AdditiveComparison)
        if torch.compiler.is_compiling():
            return blockwise(request, _as_operator)
        if isinstance(request.rule, SoftmaxRule) and not request.rule.dropout:
            return _fused(comparison, request.rule, request)
        return blockwise(request, lambda part: scores(part, request.cached))

    def weights(self, request: Request) -> Weights:
        """The weights, by the same scores as the context."""
        if torch.compiler.is_compiling():
            return request.restore_nan(request.select(_as_operator(request.comparison)))
        return request.restore_nan(request.select(scores(request.comparison, request.cached)))


def scores(comparison: Comparison, cached: Prepared) -> Scores:
    """The scores of all pairs, bias included, with derivatives of any order."""
    assert isinstance(comparison, AdditiveComparison)
    queries, keys, v = (
        upcast(each) for each in (comparison.queries, comparison.keys, comparison.v)
    )
    result: Tensor = _Scores.apply(queries, keys, v, cached)  # type: ignore[no-untyped-call]
    return result if comparison.bias is None else result + upcast(comparison.bias)


def _as_operator(comparison: Comparison) -> Scores:
    """The scores by the custom operator, which torch.compile keeps as one node."""
    assert isinstance(comparison, AdditiveComparison)
    *batch, rows, keys = comparison.shape
    size = comparison.queries.shape[-1]
    queries = upcast(comparison.queries).expand(*batch, rows, size).reshape(-1, rows, size)
    key_vectors = upcast(comparison.keys).expand(*batch, keys, size).reshape(-1, keys, size)
    v = upcast(comparison.v).expand(*batch, 1, size).reshape(-1, size)
    result = additive_scores(queries, key_vectors, v).view(comparison.shape)
    return result if comparison.bias is None else result + upcast(comparison.bias)


class _Scores(torch.autograd.Function):
    """Scores of all pairs; backward computes the hidden vectors again."""

    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, v: Tensor, cached: Prepared) -> Tensor:
        ctx.save_for_backward(queries, keys, v)
        ctx.cached = cached
        comparison = AdditiveComparison(queries, keys, v)
        return backend(_inputs(comparison, cached)).scores(slice(None)).view(comparison.shape)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        inputs, (grad_scores,) = ctx.saved_tensors, grads
        if torch.is_grad_enabled():
            plain = AdditiveComparison(*inputs).unbiased()
            return *_differentiable_grads(plain, inputs, ctx.needs_input_grad, grad_scores), None
        running = backend(_inputs(AdditiveComparison(*inputs), ctx.cached))
        running.accumulate_grad(slice(None), grad_scores.reshape(-1, *grad_scores.shape[-2:]))
        return *_input_grads(running, inputs, grad_scores.shape[:-2]), None


def _fused(
    comparison: AdditiveComparison, rule: SoftmaxRule, request: Request
) -> tuple[Context, Weights | None]:
    read = _AdditiveBlocks(comparison, rule.temperature, request.view, request.cached)
    inputs = (comparison.queries, comparison.keys, comparison.v, request.values, comparison.bias)
    tensors = [None if each is None else upcast(each) for each in inputs]
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors):
        context: Tensor = _FusedRead.apply(*tensors, read)  # type: ignore[no-untyped-call]
        return context.to(request.values.dtype), None
    context, weights = read.context(upcast(request.values))
    return context.to(request.values.dtype), weights


class _AdditiveBlocks:
    """A softmax read, a block of rows at a time."""

    def __init__(
        self, comparison: AdditiveComparison, temperature: float, view: View, cached: Prepared
    ) -> None:
        self.shape, self.temperature, self.view = comparison.shape, temperature, view
        bias = comparison.bias
        self.bias = None if bias is None else upcast(bias).detach()
        self.bias_learns = bias is not None and bias.requires_grad
        self.backend = backend(_inputs(comparison, cached))
        self.block = BLOCK_ON_GPU if comparison.keys.is_cuda else BLOCK

    def context(self, values: Tensor) -> tuple[Tensor, Tensor | None]:
        """The context, and the weights if there is one block."""
        blocks = list(self._blocks())
        if len(blocks) == 1:
            weights = self._weights(blocks[0])
            return matmul(weights, values), weights
        # Allocated at once: a part for each block would fragment the heap.
        context = values.new_empty(*self.shape[:-1], values.shape[-1])
        for rows in blocks:
            context[..., rows, :] = self._read(rows, values)
        return context, None

    def gradients(
        self, grad_context: Tensor, values: Tensor, weights: Tensor | None
    ) -> tuple[Backend, Tensor, Tensor | None]:
        """A backend with the gradients of queries, keys and v; those of values and of the bias."""
        self.backend.clear()
        grad_values, grad_bias = None, None
        if self.bias is not None and self.bias_learns:
            grad_bias = torch.zeros_like(self.bias)
        for rows in self._blocks():
            part = self._weights(rows) if weights is None else weights
            grad_rows = grad_context[..., rows, :]
            grad_part = _sum_to(part.mT @ grad_rows, values.shape)
            grad_values = grad_part if grad_values is None else grad_values.add_(grad_part)
            grad_weights = matmul(grad_rows, values.mT)
            grad_scores = torch.ops.aten._softmax_backward_data(grad_weights, part, -1, part.dtype)
            if self.temperature != 1.0:
                grad_scores /= self.temperature
            self.backend.accumulate_grad(rows, grad_scores.reshape(-1, *grad_scores.shape[-2:]))
            if grad_bias is not None:
                bias_rows = grad_bias if grad_bias.shape[-2] == 1 else grad_bias[..., rows, :]
                bias_rows += _sum_to(grad_scores, bias_rows.shape)
        assert grad_values is not None
        return self.backend, grad_values, grad_bias

    def _blocks(self) -> Iterator[slice]:
        rows = self.shape[-2]
        size = max(1, self.block * rows // max(1, self.shape.numel()))
        for start in range(0, rows, size):
            yield slice(start, min(start + size, rows))

    def _weights(self, rows: slice) -> Tensor:
        scores = self.backend.scores(rows)
        scores = scores.view(*self.shape[:-2], *scores.shape[-2:])
        view, bias = self._view_and_bias(rows)
        scores = scores if bias is None else scores + bias
        scores = scores if self.temperature == 1.0 else scores / self.temperature
        return softmax(scores, view.allowed())

    def _read(self, rows: slice, values: Tensor) -> Tensor:
        """The context of these rows; without storing their weights, if the backend can."""
        if not isinstance(self.backend, ReadsContext) or not self.backend.takes(values):
            return matmul(self._weights(rows), values)
        batch = self.shape[:-2]
        view, bias = self._view_and_bias(rows)
        allowed = view.allowed()
        mask_bias = MaskBias(
            None if allowed is None else shared_batch(allowed, batch),
            None if bias is None else shared_batch(bias.float(), batch),
            self.temperature,
        )
        context = self.backend.read(rows, shared_batch(values, batch), mask_bias)
        return context.view(*batch, *context.shape[-2:])

    def _view_and_bias(self, rows: slice) -> tuple[View, Tensor | None]:
        """The view and the bias of these rows."""
        total = self.shape[-2]
        if rows.stop - rows.start == total:
            return self.view, self.bias
        index = torch.arange(rows.start, rows.stop, device=self.view.pairs.device)
        return self.view.rows(index), take(self.bias, index, total)


class _FusedRead(torch.autograd.Function):
    """The context; backward computes scores again, and weights if they are many."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Tensor:
        *inputs, read = args
        context, weights = read.context(inputs[3])
        saves = weights is not None and weights.numel() <= SAVED_WEIGHTS
        ctx.save_for_backward(*inputs, weights if saves else None)
        ctx.read = read
        return context

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (*inputs, weights), (grad_context,) = ctx.saved_tensors, grads
        queries, keys, v, values, bias = inputs
        read: _AdditiveBlocks = ctx.read
        if torch.is_grad_enabled():
            scores = AdditiveComparison(queries, keys, v, bias).scores() / read.temperature
            context = matmul(softmax(scores, read.view.allowed()), values)
            needed = ctx.needs_input_grad
            return *_differentiable_grads(context, inputs, needed, grad_context), None
        running, grad_values, grad_bias = read.gradients(grad_context, values, weights)
        grad_inputs = _input_grads(running, inputs[:3], read.shape[:-2])
        return *grad_inputs, grad_values, grad_bias, None


def _inputs(comparison: AdditiveComparison, cached: Prepared) -> AdditiveInputs:
    """The comparison with its batch axes as one."""
    *batch, rows, _ = comparison.shape
    queries, keys, v = (
        upcast(t).detach() for t in (comparison.queries, comparison.keys, comparison.v)
    )
    size, memories = queries.shape[-1], shared_batch(keys, tuple(batch))
    exp_keys, max_abs = cached.get("e^2k"), cached.get("max|k|")
    if exp_keys is not None and exp_keys.shape[:-1] != keys.shape[:-1]:
        exp_keys = max_abs = None  # not the prepared keys: this score adds to them at each step
    return AdditiveInputs(
        queries.expand(*batch, rows, size).reshape(-1, rows, size),
        memories.tensor,
        v.expand(*batch, 1, size).reshape(-1, size),
        memories.which,
        None if exp_keys is None else exp_keys.reshape(-1, *exp_keys.shape[-2:]),
        None if max_abs is None else max_abs.reshape(-1, *max_abs.shape[-2:]),
    )


def _input_grads(running: Backend, inputs: Any, batch: torch.Size) -> tuple[Tensor, ...]:
    """The backend's gradients in the shapes of queries, keys and v."""
    queries, keys, v = running.gradients()
    grads = (each.reshape(*batch, *each.shape[-2:]) for each in (queries, keys, v[:, None, :]))
    return tuple(_sum_to(grad, each.shape) for grad, each in zip(grads, inputs, strict=True))


def _sum_to(grad: Tensor, shape: torch.Size) -> Tensor:
    """A gradient summed over the axes that were broadcast."""
    return grad if grad.shape == shape else grad.sum_to_size(shape)


def _differentiable_grads(
    output: Tensor, inputs: Any, needed: tuple[bool, ...], grad_output: Tensor
) -> tuple[Tensor | None, ...]:
    """The gradients of the inputs, by plain PyTorch, with gradients of their own."""
    sources = [tensor for tensor, each in zip(inputs, needed, strict=False) if each]
    grads = iter(torch.autograd.grad(output, sources, grad_output, create_graph=True))
    return tuple(next(grads) if each else None for each in needed[: len(inputs)])
