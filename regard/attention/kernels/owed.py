"""A tensor that every step of a loop uses, with its gradient computed once, after the last step.

Step by step its gradient is one small product and one large sum each. Put off until all steps have
been gone back through, it is one large product.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class Owed:
    """The products that a gradient is the sum of: of each, the columns and the rows."""

    def __init__(self) -> None:
        self.columns: list[Tensor] = []
        self.rows: list[Tensor] = []

    def add(self, columns: Tensor, rows: Tensor) -> None:
        """One more: `(*batch, term, n)` and `(*batch, term, m)`, for `(*batch, n, m)`."""
        self.columns.append(columns)
        self.rows.append(rows)

    def paid(self) -> Tensor | None:
        """The sum, as one product; nothing is owed then."""
        if not self.rows:
            return None
        columns, rows = torch.cat(self.columns, -2), torch.cat(self.rows, -2)
        self.columns, self.rows = [], []
        return columns.mT @ rows


def collected(tensor: Tensor, owed: Owed) -> Tensor:
    """The tensor itself; its way back comes after that of all who use it, and pays what is owed."""
    found: Tensor = _Collected.apply(tensor, owed)  # type: ignore[no-untyped-call]
    return found


class _Collected(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, owed: Owed) -> Tensor:
        ctx.owed = owed
        ctx.set_materialize_grads(False)
        return tensor.view_as(tensor)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, sent: Tensor | None) -> tuple[Tensor | None, None]:
        paid = ctx.owed.paid()
        if sent is None or paid is None:
            return sent if paid is None else paid, None
        return paid.add_(sent), None
