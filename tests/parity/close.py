"""Tolerances that are earned: a count of roundings, or twice a peer's own error."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

ROUNDINGS = {torch.float64: 32, torch.float32: 32, torch.bfloat16: 2}
"""How many eps of a tensor's largest number two ways to compute it may lie apart.

Two orders of summing a few hundred products differ by some ten. Of bfloat16 no sums are made: it is
rounded once as a weight and once as a result.
"""


def with_gradients(
    read: Callable[..., Tensor], inputs: Sequence[Tensor], direction: Tensor
) -> list[Tensor]:
    """What `read` makes of the inputs, and the gradient along `direction` towards each of them."""
    leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    output = read(*leaves)
    gradients = torch.autograd.grad(output, leaves, direction.to(output.dtype))
    return [output.detach(), *gradients]


def assert_same(found: Sequence[Tensor], expected: Sequence[Tensor]) -> None:
    """Tensor by tensor the same but for rounding."""
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=_rounding(theirs, theirs.dtype))


def assert_sums_to(parts: Tensor, expected: Tensor) -> None:
    """The sum of the parts, which may cancel: their own largest number is what is rounded."""
    atol = _rounding(parts, parts.dtype)
    torch.testing.assert_close(parts.sum(), expected, rtol=0, atol=atol)


def assert_as_exact(
    found: Sequence[Tensor], peer: Sequence[Tensor], truth: Sequence[Tensor]
) -> None:
    """No further from float64's truth than twice the peer in the same precision.

    A maximum over a few numbers can be lucky: mere rounding is granted.
    """
    for ours, theirs, exact in zip(found, peer, truth, strict=True):
        assert ours.dtype == theirs.dtype, f"{ours.dtype}, but the peer has {theirs.dtype}"
        error = float((theirs.double() - exact).abs().max())
        bound = max(2 * error, _rounding(exact, theirs.dtype))
        torch.testing.assert_close(ours.double(), exact, rtol=0, atol=bound)


def _rounding(expected: Tensor, dtype: torch.dtype) -> float:
    return ROUNDINGS[dtype] * torch.finfo(dtype).eps * float(expected.detach().abs().max())
