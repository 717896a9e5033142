"""Hold what a kernel gives to the same formula in float64."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

Cast = Callable[[Tensor], Tensor]
Formula = Callable[[Cast], Sequence[Tensor]]
FLOOR = 32, 2
"""In units of the last place, for float32 and for narrower numbers: of few, the largest error of
plain code is a matter of luck."""


@dataclass
class Count:
    """How many tensors were compared, in this process."""

    compared: int = 0


COUNT = Count()


def leaf(cast: Cast) -> Cast:
    """Cast, to something that has a gradient."""
    return lambda tensor: cast(tensor.detach()).clone().requires_grad_()


def assert_agrees(name: str, found: Sequence[Tensor], formula: Formula) -> None:
    """At most twice as wrong as plain code in float32, each tensor of it."""
    assert_close(name, found, formula(torch.Tensor.float), formula(torch.Tensor.double))


def assert_close(
    name: str, found: Sequence[Tensor], plain: Sequence[Tensor], truth: Sequence[Tensor],
    terms: float = 1.0,
) -> None:  # fmt: skip
    """At most twice as wrong as plain code in the same precision, each tensor of it.

    Args:
        name: What is compared.
        found: What the kernel gives.
        plain: What plain code gives.
        truth: What it gives in float64.
        terms: How large the terms of its sums are, at least.
    """
    for place, (own, usual, true) in enumerate(zip(found, plain, truth, strict=True)):
        COUNT.compared += 1
        assert own.shape == true.shape, f"{name}, {place}: {own.shape} and not {true.shape}"
        if not own.numel():
            continue
        assert torch.equal(own.isnan(), true.isnan()), f"{name}, {place}: NaN elsewhere"
        error, least = ((each - true).abs().nan_to_num().max() for each in (own, usual))
        unit = torch.finfo(own.dtype).eps * FLOOR[own.dtype != torch.float32]
        bound = 2 * least + unit * true.abs().nan_to_num().max().clamp(min=terms)
        assert error <= bound, f"{name}, {place}: wrong by {error:.3g}, allowed {bound:.3g}"
