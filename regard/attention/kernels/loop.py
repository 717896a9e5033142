"""One query an item, step by step, as a decoder learns: each step's read is one call of C.

What the steps send to keys and values is put off, see `owed`. That needs to be told of, by `loop`,
for it has a gradient of the first order only, which must be asked for once, for all steps.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.attention.axes import Context, Weights
from regard.attention.kernels import native
from regard.attention.kernels.comparison import Dot
from regard.attention.kernels.owed import Owed, collected
from regard.attention.kernels.request import Request
from regard.attention.kernels.rule import Soft
from regard.attention.kernels.step import Known, Step


class _Running(threading.local):
    """The loop that this thread is in, if any: what is owed to each tensor that steps read."""

    owed: "dict[int, tuple[Tensor, Tensor, Owed]] | None" = None


_running = _Running()


@contextmanager
def loop() -> Iterator[None]:
    """Reads of one query in here are steps whose gradients will be asked for once, all together.

    with kernels.loop():
        for query in queries:
            state = step(state, attention.read(query, memory))
    """
    before, _running.owed = _running.owed, {}
    try:
        yield
    finally:
        _running.owed = before


class Loop:
    """Dot products of one query an item with a gradient, in C where it was built."""

    def refusals(self, request: Request) -> list[str]:
        """Why this request cannot be answered here; empty if it can."""
        comparison = request.comparison
        if _running.owed is None:
            return ["it is for reads within kernels.loop()"]
        if not isinstance(comparison, Dot) or comparison.factor is not None:
            return ["it takes dot products, without a factor that learns"]
        with torch.no_grad():
            reasons = Step().refusals(request)
        if not reasons:
            known: Known = request.view.known[Step]
            if known.memory.keys_share != 1 or known.memory.values_share != 1:
                reasons.append("each item needs keys and values of its own")
        return reasons

    def prefers(self, request: Request) -> bool:
        """Wherever it is told of."""
        return _running.owed is not None and request.wants_gradient and request.shape[-2] == 1

    def __call__(self, request: Request) -> tuple[Context, Weights | None]:
        comparison, rule = request.comparison, request.rule
        assert isinstance(comparison, Dot)
        assert isinstance(rule, Soft)
        known: Known = request.view.known[Step]
        keys, values = _collected(comparison.keys), _collected(request.values)
        scale = comparison.scale / rule.temperature
        context: Tensor = _Read.apply(comparison.queries, *keys, *values, known, scale)  # type: ignore[no-untyped-call]
        return context, None


def _collected(tensor: Tensor) -> tuple[Tensor, Owed]:
    """The tensor as this loop reads it, and what will be owed to it."""
    assert _running.owed is not None
    if id(tensor) not in _running.owed:
        owed = Owed()
        # The tensor itself is held, too: as long as it lives nobody else has its number.
        _running.owed[id(tensor)] = tensor, collected(tensor, owed), owed
    return _running.owed[id(tensor)][1:]


class _Read(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Any) -> Tensor:
        queries, keys, ctx.to_keys, values, ctx.to_values, known, scale = given
        weights, context = queries.new_empty(*known.shape), queries.new_empty(*known.context_shape)
        native.step(known.memory, queries, None, scale, weights, context, known.work)
        ctx.save_for_backward(queries, keys, values, weights)  # C reads keys and values again
        ctx.known, ctx.scale = known, scale
        return context

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, sent: Tensor) -> tuple[Tensor | None, ...]:
        queries, _, _, weights = ctx.saved_tensors
        sent, known = sent.contiguous(), ctx.known
        to_scores, to_queries = torch.empty_like(weights), torch.empty_like(queries)
        native.step_back(known.memory, sent, weights, ctx.scale, to_scores, to_queries, known.work)
        if ctx.needs_input_grad[1]:
            ctx.to_keys.add(to_scores, queries)
        if ctx.needs_input_grad[3]:
            ctx.to_values.add(weights, sent)
        return to_queries, *[None] * 6
