"""A tensor that every step of a loop uses, with its gradient computed once, after the last step.

Step by step its gradient is one small product and one large sum each. Put off until all steps have
been gone back through, it is one large product; or, where it is no product, the steps add to it
where it lies.
"""

from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.attention.core.autocast import autocast_disabled
from regard.native.transpose import transposed


@runtime_checkable
class DeferredGrad(Protocol):
    """What is owed to a tensor."""

    def flush(self) -> Tensor | None:
        """All of it; nothing is owed then."""


class MatmulGrads:
    """The products that a gradient is the sum of: of each, the columns and the rows."""

    def __init__(self) -> None:
        self.columns: list[Tensor] = []
        self.rows: list[Tensor] = []

    def add(self, columns: Tensor, rows: Tensor) -> None:
        """One more: `(*batch, term, n)` and `(*batch, term, m)`, for `(*batch, n, m)`."""
        self.columns.append(columns)
        self.rows.append(rows)

    def flush(self) -> Tensor | None:
        """The sum, as one product; nothing is owed then."""
        if not self.rows:
            return None
        columns, rows = torch.cat(self.columns, -2), torch.cat(self.rows, -2)
        self.columns, self.rows = [], []
        return columns.mT @ rows


class SumGrad:
    """A sum that steps add to by themselves."""

    def __init__(self, tensor: Tensor) -> None:
        self.like = tensor.detach()
        self.total: Tensor | None = None

    def sum(self, width: int) -> Tensor:
        """Where to add; its last axis is padded to so many numbers."""
        if self.total is None:
            self.total = self.like.new_zeros(*self.like.shape[:-1], width)
        return self.total

    def flush(self) -> Tensor | None:
        """The sum; the next one begins at zero."""
        total, self.total = self.total, None
        return None if total is None else total[..., : self.like.shape[-1]]


def attach(tensor: Tensor, owed: DeferredGrad) -> Tensor:
    """The tensor itself; its way back comes after that of all who use it, and pays what is owed."""
    found: Tensor = _Attach.apply(tensor, owed)  # type: ignore[no-untyped-call]
    return found


class DeferredWeight:
    """A weight, `(out, in)`, that every step of a loop multiplies with."""

    def __init__(self, weight: Tensor) -> None:
        self.owed = MatmulGrads()
        self.collected = attach(weight, self.owed)
        self.turned = transposed(weight)

    def product(self, inputs: Tensor) -> Tensor:
        """One step's `inputs @ weight.mT`."""
        made: Tensor = _Product.apply(inputs, self.collected, self.turned, self.owed)  # type: ignore[no-untyped-call]
        return made


class _Attach(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, owed: DeferredGrad) -> Tensor:
        ctx.owed = owed
        ctx.set_materialize_grads(False)
        return tensor.view_as(tensor)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, sent: Tensor | None) -> tuple[Tensor | None, None]:
        paid = ctx.owed.flush()
        if sent is None or paid is None:
            return sent if paid is None else paid, None
        return paid.add_(sent), None


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, inputs: Tensor, weight: Tensor, turned: Tensor, owed: MatmulGrads
    ) -> Tensor:
        ctx.save_for_backward(inputs, weight)
        ctx.owed = owed
        with autocast_disabled(inputs.device.type):
            return inputs @ turned

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, None, None, None]:
        inputs, weight = ctx.saved_tensors
        ctx.owed.add(gradient.flatten(0, -2), inputs.flatten(0, -2))
        return gradient @ weight if ctx.needs_input_grad[0] else None, None, None, None
