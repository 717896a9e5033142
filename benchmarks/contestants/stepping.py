"""What is measured of a torch function: the forward alone, or with the backward."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from benchmarks.steps import FORWARD


def stepped(
    read: Callable[[], Tensor], leaves: Sequence[Tensor], case: dict[str, Any]
) -> Callable[[], object]:
    """One call of `read`, without a gradient or with one towards all leaves."""
    if case["step"] == FORWARD:
        return lambda: _without_gradient(read)
    direction: list[Tensor] = []

    def both() -> object:
        output = read()
        if not direction:
            direction.append(torch.randn_like(output))
        return torch.autograd.grad(output, leaves, direction[0])

    return both


def _without_gradient(read: Callable[[], Tensor]) -> Tensor:
    with torch.no_grad():
        return read()
