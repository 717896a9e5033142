"""A fast path is at most twice as wrong as plain code in the same precision, gradients too.

Wrong means: away from the same formula in float64, over all elements.
"""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from regard import attend, errors, kernels, masks, scores
from tests.attention.additive_cases import assert_at_most_twice_as_wrong

Read = Callable[..., Tensor]
BATCH, QUERIES, KEYS, SIZE = (2, 3), 67, 131, 37
SIGMA, SHARPNESS = 9.0, 3.0


def _dot(queries: Tensor, keys: Tensor) -> Tensor:
    return queries @ keys.mT


def _scaled_dot(queries: Tensor, keys: Tensor) -> Tensor:
    return queries @ keys.mT / math.sqrt(queries.shape[-1])


def _cosine(queries: Tensor, keys: Tensor) -> Tensor:
    unit = functional.normalize
    return SHARPNESS * unit(queries, dim=-1) @ unit(keys, dim=-1).mT


def _gaussian(queries: Tensor, keys: Tensor) -> Tensor:
    distances = (queries[..., :, None, :] - keys[..., None, :, :]).square().sum(-1)
    return -distances / (2 * SIGMA**2)


def _inverse(queries: Tensor, keys: Tensor) -> Tensor:
    return 1 / (queries[..., :, None, :] - keys[..., None, :, :]).square().sum(-1).sqrt()


PLAIN = {
    "dot": (_dot, scores.Dot()),
    "scaled dot": (_scaled_dot, scores.ScaledDot()),
    "cosine": (_cosine, scores.Cosine(SHARPNESS)),
    "gaussian": (_gaussian, scores.Gaussian(SIGMA)),
    "inverse distance": (_inverse, scores.InverseDistance()),
}


def _results(read: Read, inputs: list[Tensor], grad_context: Tensor) -> list[Tensor]:
    """The context and the gradients of queries, keys and values, in float64 to be compared."""
    leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs]
    context = read(*leaves)
    context.backward(grad_context.to(context.dtype))
    return [context.detach().double(), *(leaf.grad.double() for leaf in leaves)]


def _plainly(name: str, allowed: Tensor | None) -> Read:
    def read(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        found = PLAIN[name][0](queries, keys)
        found = found if allowed is None else found.masked_fill(~allowed, -torch.inf)
        return found.softmax(-1) @ values

    return read


def _compare(name: str, kernel: kernels.Kernel, dtype: torch.dtype, scale: float, masked: bool):
    torch.manual_seed(11)
    sizes = (QUERIES, SIZE), (KEYS, SIZE), (KEYS, SIZE)
    inputs = [(scale * torch.randn(*BATCH, *size)).to(dtype) for size in sizes]
    grad_context = torch.randn(*BATCH, QUERIES, SIZE).to(dtype)
    mask = masks.Causal() if masked else None
    allowed = None if mask is None else mask.dense(QUERIES, KEYS)

    def ours(queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        with kernels.using(kernel):
            return attend(queries, keys, values, score=PLAIN[name][1], mask=mask).context

    truth = _results(_plainly(name, allowed), [t.double() for t in inputs], grad_context.double())
    plain, fast = (_results(read, inputs, grad_context) for read in (_plainly(name, allowed), ours))
    for found, expected, right in zip(fast, plain, truth, strict=True):
        assert (found - right).norm() <= 2 * (expected - right).norm()


scales = pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
masked = pytest.mark.parametrize("masked", [False, True], ids=["open", "causal"])


@scales
@dtypes
@masked
@pytest.mark.parametrize("name", ["dot", "scaled dot", "cosine"])
def test_dot_products_by_sdpa(name: str, dtype: torch.dtype, scale: float, masked: bool) -> None:
    if name != "cosine" and scale > 1:
        _refuses_to_train(name, dtype, scale)
    else:
        _compare(name, kernels.Sdpa(), dtype, scale, masked)


def _refuses_to_train(name: str, dtype: torch.dtype, scale: float) -> None:
    """Scores in the hundreds: the fused backward is several times as wrong as plain code."""
    queries, keys = (scale * torch.randn(n, SIZE, dtype=dtype) for n in (QUERIES, KEYS))
    with kernels.using(kernels.Sdpa()):
        attend(queries, keys, keys, score=PLAIN[name][1])  # to read only, it is exact
        with pytest.raises(errors.KernelError, match="would lose digits in the gradient"):
            attend(queries.requires_grad_(), keys, keys, score=PLAIN[name][1])


@dtypes
@masked
@pytest.mark.parametrize("scale", [0.1, 1.0, 2.0])
def test_a_gaussian_by_sdpa(dtype: torch.dtype, scale: float, masked: bool) -> None:
    _compare("gaussian", kernels.Sdpa(), dtype, scale, masked)


@scales
@dtypes
@masked
@pytest.mark.parametrize("name", PLAIN)
def test_the_reference(name: str, dtype: torch.dtype, scale: float, masked: bool) -> None:
    _compare(name, kernels.Reference(), dtype, scale, masked)


@dtypes
@masked
@pytest.mark.parametrize("scale", [0.1, 1.0, 3.0, 10.0, 100.0])
def test_additive_by_exponentials(dtype: torch.dtype, scale: float, masked: bool) -> None:
    """Gradients of the parameters too. At the larger scales a real tanh takes over."""
    mask = masks.Causal() if masked else None
    assert_at_most_twice_as_wrong(dtype, scale, mask, (QUERIES, KEYS, SIZE, 101))


@pytest.mark.parametrize(
    ("size", "sigma"), [(37, 1.0), (3, 9.0)], ids=["far apart", "few dimensions"]
)
def test_a_gaussian_that_would_lose_digits_is_refused(size: int, sigma: float) -> None:
    queries, keys = torch.randn(5, size), torch.randn(7, size)
    with (
        kernels.using(kernels.Sdpa()),
        pytest.raises(errors.KernelError, match="lose digits: few dimensions, or points far apart"),
    ):
        attend(queries, keys, keys, score=scores.Gaussian(sigma))
    attend(queries, keys, keys, score=scores.Gaussian(sigma))


@pytest.mark.parametrize("score", [scores.Gaussian(3.0), scores.InverseDistance()], ids=str)
def test_distances_far_from_the_origin(score: scores.Score) -> None:
    """What the terms of an expanded square lose there is less than float32 has."""
    torch.manual_seed(13)
    queries, keys, values = torch.randn(7, 5), torch.randn(11, 5), torch.randn(11, 3)
    moved = attend(queries.double() + 1000, keys.double() + 1000, values.double(), score=score)
    rounded = attend((queries + 1000), (keys + 1000), values, score=score)
    exact = attend((queries + 1000).double(), (keys + 1000).double(), values.double(), score=score)
    torch.testing.assert_close(rounded.context.double(), exact.context, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(exact.context, moved.context, rtol=1e-2, atol=1e-2)
