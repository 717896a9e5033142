"""Deferred gradients: of what every step of a loop uses, computed once, after the last step.

A decoder's steps share keys, values and weights. Step by step, each gradient is one small product
and one large sum; deferred until backward has passed all steps, it is one large product. A gradient
that is no product is summed in place. Both hold inside `deferred_gradients()` only: such a gradient
is of first order, and backward must be called once, for all steps together.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.attention.core.autocast import autocast_disabled
from regard.native.transpose import transposed

Made = TypeVar("Made")


class _Scope(threading.local):
    """Of the innermost `deferred_gradients()` of this thread: what was made of each tensor."""

    cache: "dict[tuple[Any, int], tuple[Tensor, Any]] | None" = None


_scope = _Scope()


@contextmanager
def deferred_gradients() -> Iterator[None]:
    """Reads of one query in here are steps whose gradients are computed once, all together.

    with kernels.deferred_gradients():
        for query in queries:
            state = step(state, attention.read(query, memory))
    """
    outer, _scope.cache = _scope.cache, {}
    try:
        yield
    finally:
        _scope.cache = outer


def is_deferring() -> bool:
    """Are we inside `deferred_gradients()`?"""
    return _scope.cache is not None


def once_per_loop(make: Callable[[Tensor], Made], tensor: Tensor) -> Made:
    """What `make` makes of a tensor, cached for all steps of this loop."""
    assert _scope.cache is not None
    key = make, id(tensor)
    if key not in _scope.cache:
        # The tensor is held, too: as long as it lives no other tensor has its id.
        _scope.cache[key] = tensor, make(tensor)
    made: Made = _scope.cache[key][1]
    return made


@runtime_checkable
class DeferredGrad(Protocol):
    """The part of a tensor's gradient that was deferred."""

    def flush(self) -> Tensor | None:
        """All of it; the next starts from zero."""


class MatmulGrads:
    """A gradient that is a sum of matrix products, whose factors are collected."""

    def __init__(self) -> None:
        self.columns: list[Tensor] = []
        self.rows: list[Tensor] = []

    def add(self, columns: Tensor, rows: Tensor) -> None:
        """One more: `(*batch, term, n)` and `(*batch, term, m)`, for `(*batch, n, m)`."""
        self.columns.append(columns)
        self.rows.append(rows)

    def flush(self) -> Tensor | None:
        """The sum, as one product of all factors."""
        if not self.rows:
            return None
        columns, rows = torch.cat(self.columns, -2), torch.cat(self.rows, -2)
        self.columns, self.rows = [], []
        return columns.mT @ rows


class SumGrad:
    """A gradient that steps add to in place."""

    def __init__(self, tensor: Tensor) -> None:
        self.like = tensor.detach()
        self.total: Tensor | None = None

    def sum(self, width: int) -> Tensor:
        """Where to add; its last axis is padded to so many numbers."""
        if self.total is None:
            self.total = self.like.new_zeros(*self.like.shape[:-1], width)
        return self.total

    def flush(self) -> Tensor | None:
        """The sum; the next one starts from zero."""
        total, self.total = self.total, None
        return None if total is None else total[..., : self.like.shape[-1]]


def attach(tensor: Tensor, deferred: DeferredGrad) -> Tensor:
    """The tensor itself; its backward runs after that of all its users, and flushes."""
    attached: Tensor = _Attach.apply(tensor, deferred)  # type: ignore[no-untyped-call]
    return attached


class DeferredWeight:
    """A weight, `(out, in)`, that every step of a loop multiplies with."""

    def __init__(self, weight: Tensor) -> None:
        self.grads = MatmulGrads()
        self.attached = attach(weight, self.grads)
        self.transposed = transposed(weight)

    def product(self, inputs: Tensor) -> Tensor:
        """One step's `inputs @ weight.mT`."""
        made: Tensor = _Product.apply(inputs, self.attached, self.transposed, self.grads)  # type: ignore[no-untyped-call]
        return made


def deferred_weight(weight: Tensor) -> DeferredWeight | None:
    """A weight as the steps of a loop use it; None outside of one, or without a gradient."""
    if _scope.cache is None or not (torch.is_grad_enabled() and weight.requires_grad):
        return None
    return once_per_loop(DeferredWeight, weight)


class _Attach(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, deferred: DeferredGrad) -> Tensor:
        ctx.deferred = deferred
        ctx.set_materialize_grads(False)
        return tensor.view_as(tensor)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor | None) -> tuple[Tensor | None, None]:
        deferred = ctx.deferred.flush()
        if gradient is None or deferred is None:
            return gradient if deferred is None else deferred, None
        return deferred.add_(gradient), None


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, weight: Tensor, transposed: Tensor, grads: MatmulGrads
    ) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        ctx.grads = grads
        with autocast_disabled(inputs.device.type):
            return inputs @ transposed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, None, None, None]:
        inputs, weight = ctx.saved_tensors
        ctx.grads.add(gradient.flatten(0, -2), inputs.flatten(0, -2))
        return gradient @ weight if ctx.needs_input_grad[0] else None, None, None, None
