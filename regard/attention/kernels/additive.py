"""Additive scores, selected and read without a vector for each pair.

With softmax the read is fused, in blocks of rows: neither the hidden vectors of all pairs nor all
weights are ever held, and the way back computes them again. Any other selection gets its scores
from the same kernel.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from regard.attention.axes import Context, Prepared, Scores, Weights
from regard.attention.kernels import native
from regard.attention.kernels.additive_engines import Engine, Problem, engine, exponentials
from regard.attention.kernels.additive_op import additive_scores
from regard.attention.kernels.comparison import Comparison, Tanh, take
from regard.attention.kernels.numbers import matmul, softmax, wide
from regard.attention.kernels.reference import blockwise
from regard.attention.kernels.request import Request, View
from regard.attention.kernels.rule import Soft
from regard.attention.looking import in_transform

BLOCK = 1 << 20
"""How many weights are held at once."""

SAVED = 1 << 22
"""Up to how many weights are kept for the way back, rather than computed again."""


class Additive:
    """Additive scores by exponentials, in C where it was built; elsewhere by tanh, in chunks."""

    def keep(self, kind: type[Comparison], prepared: Prepared) -> Mapping[str, Tensor]:
        """e^2k of each key, and how large its numbers are: a step computes its query's alone."""
        if kind is not Tanh or torch.compiler.is_compiling() or in_transform():
            return {}
        keys = prepared["keys"].detach()
        if keys.device.type != "cpu" or keys.dtype == torch.float64 or native.library() is None:
            return {}
        found, reach = exponentials(wide(keys))
        # Held for each key, as everything in a memory is, so that it is written and erased with it.
        return {"e^2k": found, "reach": found.new_full((*found.shape[:-1], 1), reach)}

    def refusals(self, request: Request) -> list[str]:
        """Why this request cannot be answered here; empty if it can."""
        comparison, reasons = request.comparison, []
        if not isinstance(comparison, Tanh):
            return [f"scores by {type(comparison).__name__} are not additive"]
        if comparison.keys.device.type != "cpu":
            reasons.append(f"it is for the CPU, and the keys are on {comparison.keys.device}")
        if comparison.dtype == torch.float64:
            reasons.append("float64 is left to the reference")
        if comparison.shape.numel() == 0:
            reasons.append("there are no pairs")
        if not torch.compiler.is_compiling() and in_transform():
            reasons.append("inside vmap or another torch.func transform")
        return reasons

    def prefers(self, request: Request) -> bool:
        """Always: a vector for each pair is slow from the first pair on."""
        return isinstance(request.comparison, Tanh)

    def __call__(self, request: Request) -> tuple[Context, Weights | None]:
        comparison = request.comparison
        assert isinstance(comparison, Tanh)
        if torch.compiler.is_compiling():
            return blockwise(request, _as_operator)
        bias_learns = comparison.bias is not None and comparison.bias.requires_grad
        if isinstance(request.rule, Soft) and not request.rule.dropout and not bias_learns:
            return _fused(comparison, request.rule, request)
        return blockwise(request, lambda part: scores(part, request.kept))

    def weights(self, request: Request) -> Weights:
        """The weights, by the same scores as the context."""
        if torch.compiler.is_compiling():
            return request.poisoned(request.select(_as_operator(request.comparison)))
        return request.poisoned(request.select(scores(request.comparison, request.kept)))


def scores(comparison: Comparison, kept: Prepared) -> Scores:
    """The scores of all pairs, bias included; they have their gradients, of any order."""
    assert isinstance(comparison, Tanh)
    queries, keys, v = (wide(each) for each in (comparison.queries, comparison.keys, comparison.v))
    found: Tensor = _Scores.apply(queries, keys, v, kept)  # type: ignore[no-untyped-call]
    return found if comparison.bias is None else found + wide(comparison.bias)


def _as_operator(comparison: Comparison) -> Scores:
    """The scores by the operator that torch.compile keeps as one node."""
    assert isinstance(comparison, Tanh)
    *batch, rows, keys = comparison.shape
    size = comparison.queries.shape[-1]
    queries = wide(comparison.queries).expand(*batch, rows, size).reshape(-1, rows, size)
    own = wide(comparison.keys).expand(*batch, keys, size).reshape(-1, keys, size)
    v = wide(comparison.v).expand(*batch, 1, size).reshape(-1, size)
    found = additive_scores(queries, own, v).view(comparison.shape)
    return found if comparison.bias is None else found + wide(comparison.bias)


class _Scores(torch.autograd.Function):
    """Scores of all pairs; the way back computes the hidden vectors again."""

    @staticmethod
    def forward(ctx: Any, queries: Tensor, keys: Tensor, v: Tensor, kept: Prepared) -> Tensor:
        ctx.save_for_backward(queries, keys, v)
        ctx.kept = kept
        comparison = Tanh(queries, keys, v)
        return engine(_problem(comparison, kept)).scores(slice(None)).view(comparison.shape)

    @staticmethod
    def backward(ctx: Any, *sent: Tensor) -> tuple[Tensor | None, ...]:
        inputs = ctx.saved_tensors
        if torch.is_grad_enabled():
            return *_plainly(Tanh(*inputs).raw(), inputs, ctx.needs_input_grad, sent[0]), None
        running = engine(_problem(Tanh(*inputs), ctx.kept))
        running.send(slice(None), sent[0].reshape(-1, *sent[0].shape[-2:]))
        return *_shared_out(running, inputs, sent[0].shape[:-2]), None


def _fused(comparison: Tanh, rule: Soft, request: Request) -> tuple[Context, Weights | None]:
    read = _Read(comparison, rule.temperature, request.view, request.kept)
    tensors = [wide(each) for each in (comparison.queries, comparison.keys, comparison.v)]
    tensors.append(wide(request.values))
    if torch.is_grad_enabled() and any(each.requires_grad for each in tensors):
        context: Tensor = _FusedRead.apply(*tensors, read)  # type: ignore[no-untyped-call]
        return context.to(request.values.dtype), None
    context, weights = read.context(tensors[3])
    return context.to(request.values.dtype), weights


class _Read:
    """A softmax read, block of rows by block of rows."""

    def __init__(self, comparison: Tanh, temperature: float, view: View, kept: Prepared) -> None:
        self.shape = comparison.shape
        self.bias, self.temperature, self.view, self.kept = comparison.bias, temperature, view, kept
        self.engine = engine(_problem(comparison, kept))

    def context(self, values: Tensor) -> tuple[Tensor, Tensor | None]:
        """The context, and the weights if they came in one block."""
        blocks = list(self._blocks())
        if len(blocks) == 1:
            weights = self._weights(blocks[0])
            return matmul(weights, values), weights
        # One tensor from the start: parts of it between the blocks would leave holes in the heap.
        context = values.new_empty(*self.shape[:-1], values.shape[-1])
        for rows in blocks:
            context[..., rows, :] = matmul(self._weights(rows), values)
        return context, None

    def gradients(
        self, sent: Tensor, values: Tensor, weights: Tensor | None
    ) -> tuple[Engine, Tensor]:
        """What the context's gradient sends back: an engine with its sums, and to the values."""
        self.engine.clear()
        to_values = None
        for rows in self._blocks():
            part = self._weights(rows) if weights is None else weights
            from_context = sent[..., rows, :]
            to_these = _summed(part.mT @ from_context, values.shape)
            to_values = to_these if to_values is None else to_values.add_(to_these)
            to_weights = matmul(from_context, values.mT)
            to_scores = part * (to_weights - (part * to_weights).sum(-1, keepdim=True))
            if self.temperature != 1.0:
                to_scores /= self.temperature
            self.engine.send(rows, to_scores.reshape(-1, *to_scores.shape[-2:]))
        assert to_values is not None
        return self.engine, to_values

    def _blocks(self) -> Iterator[slice]:
        rows = self.shape[-2]
        size = max(1, BLOCK * rows // max(1, self.shape.numel()))
        for start in range(0, rows, size):
            yield slice(start, min(start + size, rows))

    def _weights(self, rows: slice) -> Tensor:
        found = self.engine.scores(rows)
        found = found.view(*self.shape[:-2], *found.shape[-2:])
        view, bias, total = self.view, self.bias, self.shape[-2]
        if rows.stop - rows.start < total:
            index = torch.arange(rows.start, rows.stop, device=found.device)
            view, bias = view.rows(index), take(bias, index, total)
        found = found if bias is None else found + wide(bias)
        found = found if self.temperature == 1.0 else found / self.temperature
        return softmax(found, view.allowed())


class _FusedRead(torch.autograd.Function):
    """The context; the way back computes scores again, and weights if they are many."""

    @staticmethod
    def forward(
        ctx: Any, queries: Tensor, keys: Tensor, v: Tensor, values: Tensor, read: _Read
    ) -> Tensor:
        context, weights = read.context(values)
        few = weights is not None and weights.numel() <= SAVED
        ctx.save_for_backward(queries, keys, v, values, weights if few else None)
        ctx.read = read
        return context

    @staticmethod
    def backward(ctx: Any, *sent: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, weights = ctx.saved_tensors
        read: _Read = ctx.read
        if torch.is_grad_enabled():
            found = Tanh(inputs[0], inputs[1], inputs[2], read.bias).scores() / read.temperature
            context = matmul(softmax(found, read.view.allowed()), inputs[3])
            return *_plainly(context, inputs, ctx.needs_input_grad, sent[0]), None
        running, to_values = read.gradients(sent[0], inputs[3], weights)
        return *_shared_out(running, inputs[:3], read.shape[:-2]), to_values, None


def _problem(comparison: Tanh, kept: Prepared) -> Problem:
    """The comparison with its batch axes as one."""
    *batch, rows, _ = comparison.shape
    queries, keys, v = (
        wide(t).detach() for t in (comparison.queries, comparison.keys, comparison.v)
    )
    size, own = queries.shape[-1], keys.shape[:-2]
    memories = torch.arange(own.numel()).view(own).expand(batch)
    exponential, reach = kept.get("e^2k"), kept.get("reach")
    if exponential is not None and exponential.shape[:-1] != keys.shape[:-1]:
        exponential = reach = None  # these keys are not those that were prepared: they look back
    return Problem(
        queries.expand(*batch, rows, size).reshape(-1, rows, size),
        keys.reshape(-1, *keys.shape[-2:]),
        v.expand(*batch, 1, size).reshape(-1, size),
        memories.reshape(-1).contiguous(),
        None if exponential is None else exponential.reshape(-1, *exponential.shape[-2:]),
        None if reach is None else reach.reshape(-1, *reach.shape[-2:]),
    )


def _shared_out(running: Engine, inputs: Any, batch: torch.Size) -> tuple[Tensor, ...]:
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
