"""Additive scores, selected and read without a vector for each pair.

With softmax the read is fused, in blocks of rows: neither the hidden vectors of all pairs nor all
weights are ever held, and the way back computes them again. Any other selection gets its scores
from the same kernel.
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
    few,
    shared_batch,
)
from regard.attention.kernels.additive_op import additive_scores
from regard.attention.kernels.comparison import AdditiveComparison, Comparison, take
from regard.attention.kernels.reference import blockwise
from regard.attention.kernels.request import EMPTY, Request, View
from regard.attention.kernels.rule import SoftmaxRule
from regard.native.eligibility import usable

BLOCK = 1 << 20
"""How many weights are held at once."""

BLOCK_ON_GPU = 1 << 24
"""The same where thousands of threads want work, and a launch costs as much as many pairs."""

SAVED = 1 << 22
"""Up to how many weights are kept for the way back, rather than computed again."""


class AdditiveKernel:
    """Additive scores: by exponentials in C if that was built, by Triton on a GPU, or in chunks."""

    def cache_keys(self, kind: type[Comparison], prepared: Prepared) -> Mapping[str, Tensor]:
        """e^2k of each key, and how large its numbers are: a step computes its query's alone."""
        if kind is not AdditiveComparison or not usable():
            return {}
        keys = upcast(prepared["keys"].detach())
        if not usable(keys):
            return {}
        found, reach = exponentials(keys)
        # Held for each key, as everything in a memory is, so that it is written and erased with it.
        return {"e^2k": found, "reach": found.new_full((*found.shape[:-1], 1), reach)}

    def can_skip_cache(self, kind: type[Comparison], prepared: Prepared) -> bool:
        """Few exponentials are made as many queries read, and stay in the cache."""
        return kind is AdditiveComparison and few(prepared["keys"])

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
        """Always: a vector for each pair is slow from the first pair on."""
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


def scores(comparison: Comparison, kept: Prepared) -> Scores:
    """The scores of all pairs, bias included; they have their gradients, of any order."""
    assert isinstance(comparison, AdditiveComparison)
    queries, keys, v = (
        upcast(each) for each in (comparison.queries, comparison.keys, comparison.v)
    )
    found: Tensor = _Scores.apply(queries, keys, v, kept)  # type: ignore[no-untyped-call]
    return found if comparison.bias is None else found + upcast(comparison.bias)


def _as_operator(comparison: Comparison) -> Scores:
    """The scores by the operator that torch.compile keeps as one node."""
    assert isinstance(comparison, AdditiveComparison)
    *batch, rows, keys = comparison.shape
    size = comparison.queries.shape[-1]
    queries = upcast(comparison.queries).expand(*batch, rows, size).reshape(-1, rows, size)
    own = upcast(comparison.keys).expand(*batch, keys, size).reshape(-1, keys, size)
    v = upcast(comparison.v).expand(*batch, 1, size).reshape(-1, size)
    found = additive_scores(queries, own, v).view(comparison.shape)
    return found if comparison.bias is None else found + upcast(comparison.bias)


class _Scores(torch.autograd.Function):
    """Scores of all pairs; the way back computes the hidden vectors again."""

    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, v: Tensor, kept: Prepared) -> Tensor:
        ctx.save_for_backward(queries, keys, v)
        ctx.kept = kept
        comparison = AdditiveComparison(queries, keys, v)
        return backend(_inputs(comparison, kept)).scores(slice(None)).view(comparison.shape)

    @staticmethod
    def backward(ctx: Any, *sent: Tensor) -> tuple[Tensor | None, ...]:
        inputs = ctx.saved_tensors
        if torch.is_grad_enabled():
            return *_plainly(
                AdditiveComparison(*inputs).unbiased(), inputs, ctx.needs_input_grad, sent[0]
            ), None
        running = backend(_inputs(AdditiveComparison(*inputs), ctx.kept))
        running.accumulate_grad(slice(None), sent[0].reshape(-1, *sent[0].shape[-2:]))
        return *_shared_out(running, inputs, sent[0].shape[:-2]), None


def _fused(
    comparison: AdditiveComparison, rule: SoftmaxRule, request: Request
) -> tuple[Context, Weights | None]:
    read = _AdditiveBlocks(comparison, rule.temperature, request.view, request.cached)
    given = (comparison.queries, comparison.keys, comparison.v, request.values, comparison.bias)
    tensors = [None if each is None else upcast(each) for each in given]
    if torch.is_grad_enabled() and any(t is not None and t.requires_grad for t in tensors):
        context: Tensor = _FusedRead.apply(*tensors, read)  # type: ignore[no-untyped-call]
        return context.to(request.values.dtype), None
    context, weights = read.context(upcast(request.values))
    return context.to(request.values.dtype), weights


class _AdditiveBlocks:
    """A softmax read, block of rows by block of rows."""

    def __init__(
        self, comparison: AdditiveComparison, temperature: float, view: View, kept: Prepared
    ) -> None:
        self.shape, self.temperature, self.view = comparison.shape, temperature, view
        bias = comparison.bias
        self.bias = None if bias is None else upcast(bias).detach()
        self.bias_learns = bias is not None and bias.requires_grad
        self.engine = backend(_inputs(comparison, kept))
        self.block = BLOCK_ON_GPU if comparison.keys.is_cuda else BLOCK

    def context(self, values: Tensor) -> tuple[Tensor, Tensor | None]:
        """The context, and the weights if they came in one block."""
        blocks = list(self._blocks())
        if len(blocks) == 1:
            weights = self._weights(blocks[0])
            return matmul(weights, values), weights
        # One tensor from the start: parts of it between the blocks would leave holes in the heap.
        context = values.new_empty(*self.shape[:-1], values.shape[-1])
        for rows in blocks:
            context[..., rows, :] = self._read(rows, values)
        return context, None

    def gradients(
        self, sent: Tensor, values: Tensor, weights: Tensor | None
    ) -> tuple[Backend, Tensor, Tensor | None]:
        """What the context's gradient sends: an engine with its sums, to values and to the bias."""
        self.engine.clear()
        to_values, to_bias = None, None
        if self.bias is not None and self.bias_learns:
            to_bias = torch.zeros_like(self.bias)
        for rows in self._blocks():
            part = self._weights(rows) if weights is None else weights
            from_context = sent[..., rows, :]
            to_these = _summed(part.mT @ from_context, values.shape)
            to_values = to_these if to_values is None else to_values.add_(to_these)
            to_weights = matmul(from_context, values.mT)
            to_scores = torch.ops.aten._softmax_backward_data(to_weights, part, -1, part.dtype)
            if self.temperature != 1.0:
                to_scores /= self.temperature
            self.engine.accumulate_grad(rows, to_scores.reshape(-1, *to_scores.shape[-2:]))
            if to_bias is not None:
                own = to_bias if to_bias.shape[-2] == 1 else to_bias[..., rows, :]
                own += _summed(to_scores, own.shape)
        assert to_values is not None
        return self.engine, to_values, to_bias

    def _blocks(self) -> Iterator[slice]:
        rows = self.shape[-2]
        size = max(1, self.block * rows // max(1, self.shape.numel()))
        for start in range(0, rows, size):
            yield slice(start, min(start + size, rows))

    def _weights(self, rows: slice) -> Tensor:
        found = self.engine.scores(rows)
        found = found.view(*self.shape[:-2], *found.shape[-2:])
        view, bias = self._part(rows)
        found = found if bias is None else found + bias
        found = found if self.temperature == 1.0 else found / self.temperature
        return softmax(found, view.allowed())

    def _read(self, rows: slice, values: Tensor) -> Tensor:
        """The context of these rows: without their weights, if the engine can."""
        if not isinstance(self.engine, ReadsContext) or not self.engine.takes(values):
            return matmul(self._weights(rows), values)
        batch = self.shape[:-2]
        view, bias = self._part(rows)
        allowed = view.allowed()
        sight = MaskBias(
            None if allowed is None else shared_batch(allowed, batch),
            None if bias is None else shared_batch(bias.float(), batch),
            self.temperature,
        )
        found = self.engine.read(rows, shared_batch(values, batch), sight)
        return found.view(*batch, *found.shape[-2:])

    def _part(self, rows: slice) -> tuple[View, Tensor | None]:
        """The view and the bias of these rows."""
        total = self.shape[-2]
        if rows.stop - rows.start == total:
            return self.view, self.bias
        index = torch.arange(rows.start, rows.stop, device=self.view.pairs.device)
        return self.view.rows(index), take(self.bias, index, total)


class _FusedRead(torch.autograd.Function):
    """The context; the way back computes scores again, and weights if they are many."""

    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        *inputs, read = given
        context, weights = read.context(inputs[3])
        few = weights is not None and weights.numel() <= SAVED
        ctx.save_for_backward(*inputs, weights if few else None)
        ctx.read = read
        return context

    @staticmethod
    def backward(ctx: Any, *sent: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, weights = ctx.saved_tensors
        queries, keys, v, values, bias = inputs
        read: _AdditiveBlocks = ctx.read
        if torch.is_grad_enabled():
            found = AdditiveComparison(queries, keys, v, bias).scores() / read.temperature
            context = matmul(softmax(found, read.view.allowed()), values)
            return *_plainly(context, inputs, ctx.needs_input_grad, sent[0]), None
        running, to_values, to_bias = read.gradients(sent[0], values, weights)
        to_scored = _shared_out(running, inputs[:3], read.shape[:-2])
        return *to_scored, to_values, to_bias, None


def _inputs(comparison: AdditiveComparison, kept: Prepared) -> AdditiveInputs:
    """The comparison with its batch axes as one."""
    *batch, rows, _ = comparison.shape
    queries, keys, v = (
        upcast(t).detach() for t in (comparison.queries, comparison.keys, comparison.v)
    )
    size, memories = queries.shape[-1], shared_batch(keys, tuple(batch))
    exponential, reach = kept.get("e^2k"), kept.get("reach")
    if exponential is not None and exponential.shape[:-1] != keys.shape[:-1]:
        exponential = reach = None  # these keys are not those that were prepared: they look back
    return AdditiveInputs(
        queries.expand(*batch, rows, size).reshape(-1, rows, size),
        memories.tensor,
        v.expand(*batch, 1, size).reshape(-1, size),
        memories.which,
        None if exponential is None else exponential.reshape(-1, *exponential.shape[-2:]),
        None if reach is None else reach.reshape(-1, *reach.shape[-2:]),
    )


def _shared_out(running: Backend, inputs: Any, batch: torch.Size) -> tuple[Tensor, ...]:
    """The engine's sums, brought back to the shapes of queries, keys and v."""
    queries, keys, v = running.gradients()
    found = (queries, keys, v[:, None, :])
    whole = (each.reshape(*batch, *each.shape[-2:]) for each in found)
    return tuple(_summed(each, to.shape) for each, to in zip(whole, inputs, strict=True))


def _summed(gradient: Tensor, shape: torch.Size) -> Tensor:
    """A gradient summed over what was shared."""
    return gradient if gradient.shape == shape else gradient.sum_to_size(shape)


def _plainly(
    found: Tensor, inputs: Any, wanted: tuple[bool, ...], sent: Tensor
) -> tuple[Tensor | None, ...]:
    """Gradients that themselves have gradients, by plain PyTorch."""
    sources = [each for each, needed in zip(inputs, wanted, strict=False) if needed]
    got = iter(torch.autograd.grad(found, sources, sent, create_graph=True))
    return tuple(next(got) if needed else None for needed in wanted[: len(inputs)])
