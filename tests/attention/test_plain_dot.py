"""The fast path for plain dot products reads what the usual path reads, which takes all else."""

import pytest
import torch
from torch import Tensor, nn

from regard import attend, kernels, masks, scores, selection
from regard.attention.core.errors import DtypeError, KernelError, ShapeError
from regard.attention.fast_paths import plain_dot

SIZE = 6
SCORES = {
    "dot": scores.Dot,
    "scaled": scores.ScaledDot,
    "scaled, learned": lambda: scores.ScaledDot(learned=True),
    "bilinear": lambda: scores.Bilinear(SIZE, SIZE),
    "cosine": scores.Cosine,
    "location": lambda: scores.Location(SIZE, 40),
}


def drawn(queries: int, keys: int, value_size: int = SIZE) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    sizes = ((queries, SIZE), (keys, SIZE), (keys, value_size))
    given = [torch.randn(2, 3, *size, requires_grad=True) for size in sizes]
    return given[0], given[1], given[2]


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("temperature", [1.0, 0.4])
@pytest.mark.parametrize("shape", [(40, 40, SIZE), (40, 40, SIZE + 1), (4, 7, SIZE)])
@pytest.mark.parametrize("learning", [False, True])
@pytest.mark.parametrize("axes", [3, 4])
def test_it_reads_what_the_reference_reads(
    name: str, temperature: float, shape: tuple[int, int, int], learning: bool, axes: int
) -> None:
    given, score, select = drawn(*shape), SCORES[name](), selection.Softmax(temperature)
    given = given if axes == 4 else tuple(each[0] for each in given)

    def answers(mask: masks.Mask | None) -> list[Tensor]:
        own = [each.detach().requires_grad_(learning) for each in given]
        assert plain_dot(score, select, *own) is not None
        reading = attend(*own, score=score, select=select, mask=mask)
        assert reading.state.step == shape[0]
        used = own[:1] + own[2:] if name == "location" else own
        gradients = torch.autograd.grad(reading.context.square().sum(), used) if learning else ()
        return [reading.context, reading.weights, reading.rows([1, 3]), *gradients]

    with torch.set_grad_enabled(learning):
        found = answers(None)
        with kernels.using(kernels.Reference()):
            true = answers(masks.Window(99, 99))  # which hides nothing, but leaves the fast path
    for ours, theirs in zip(found, true, strict=True):
        torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=2e-4)


def test_a_kernel_that_is_named_is_asked() -> None:
    with kernels.using(kernels.AdditiveKernel()), pytest.raises(KernelError):
        attend(*drawn(40, 40))


class Halved(scores.Dot):
    """A score of somebody's own."""


@pytest.mark.parametrize(
    ("score", "select"),
    [
        (Halved(), selection.Softmax()),
        (scores.Dot(), selection.Sparsemax()),
        (scores.Dot(), selection.Softmax(dropout=0.1)),
        (scores.Gaussian(), selection.Softmax()),
        (None, selection.Softmax()),
    ],
)
def test_others_take_the_usual_path(score: object, select: object) -> None:
    assert plain_dot(score, select, *drawn(40, 40)) is None


def test_tensors_that_are_not_plain_take_the_usual_path() -> None:
    queries, keys, values = drawn(40, 40)
    usual = scores.Dot(), selection.Softmax()
    assert plain_dot(*usual, queries, nn.Parameter(keys.detach()), values) is None
    assert plain_dot(*usual, queries.double(), keys.double(), values.double()) is None
    assert plain_dot(*usual, queries[0, 0], keys[0, 0], values[0, 0]) is None
    assert plain_dot(*usual, queries[:1], keys, values) is None
    with torch.autocast("cpu", torch.bfloat16):
        assert plain_dot(*usual, queries, keys, values) is None


def test_errors_are_those_of_the_usual_path() -> None:
    queries, keys, values = drawn(40, 40)
    with pytest.raises(ShapeError, match="one size"):
        attend(queries[..., :4], keys, values)
    with pytest.raises(ShapeError, match="positions"):
        attend(queries, keys, values[..., :7, :])
    with pytest.raises(DtypeError, match="Convert"):
        attend(queries, keys, values.double())
