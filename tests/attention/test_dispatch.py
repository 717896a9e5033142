"""A kernel of somebody's own that caches something of the keys is dispatched to like the others."""

from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

from regard import Attention, attend, errors, kernels, masks, scores
from regard.attention.kernels import AdditiveComparison, Comparison, Request

QUERIES, KEYS, SIZE, HIDDEN = 3, 7, 5, 11


class Exponentials:
    """Additive scores by tanh(a + b) = 1 − 2 / (1 + e^2a · e^2b), with e^2b cached."""

    def __init__(self) -> None:
        self.read: list[Tensor] = []

    def cache_keys(
        self, kind: type[Comparison], prepared: Mapping[str, Tensor]
    ) -> Mapping[str, Tensor]:
        return {"exponentials": (2 * prepared["keys"]).exp()} if kind is AdditiveComparison else {}

    def refusals(self, request: Request) -> list[str]:
        cached = "exponentials" in request.cached
        return [] if cached else ["nothing is cached of these keys"]

    def prefers(self, request: Request) -> bool:
        return True

    def __call__(self, request: Request) -> tuple[Tensor, None]:
        assert isinstance(request.comparison, AdditiveComparison)
        self.read.append(request.cached["exponentials"])
        queries = (2 * request.comparison.queries).exp()[..., :, None, :]
        hidden = 1 - 2 / (1 + queries * request.cached["exponentials"][..., None, :, :])
        weights = request.select((hidden * request.comparison.v).sum(-1))
        return weights @ request.values, None


@pytest.fixture
def inputs() -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(2)
    return torch.randn(QUERIES, SIZE), torch.randn(KEYS, SIZE), torch.randn(KEYS, SIZE)


def test_it_answers_and_finds_what_it_kept(inputs) -> None:
    queries, keys, values = inputs
    attention, kernel = Attention(scores.Additive(SIZE, SIZE, HIDDEN)), Exponentials()
    with kernels.using(kernel):
        memory = attention.prepare(keys, values, masks.Lengths(torch.tensor(5)))
        reading = attention.read(queries, memory)
    expected = attention(queries, keys, values, mask=masks.Lengths(torch.tensor(5)))
    torch.testing.assert_close(reading.context, expected.context)
    torch.testing.assert_close(reading.weights, expected.weights)
    assert kernel.read[0].shape == (KEYS, HIDDEN)


def test_what_it_kept_follows_the_memory(inputs) -> None:
    queries, keys, values = inputs
    attention, kernel = Attention(scores.Additive(SIZE, SIZE, HIDDEN)), Exponentials()
    with kernels.using(kernel):
        memory = attention.prepare(keys[:4], values[:4]).write(keys[4:], values[4:]).erase([1])
        reading = attention.read(queries, memory)
    left = [0, 2, 3, 4, 5, 6]
    expected = attention(queries, keys[left], values[left])
    torch.testing.assert_close(reading.context, expected.context)


def test_a_refusal_is_an_error_with_its_reasons(inputs) -> None:
    with (
        kernels.using(Exponentials(), kernels.Sdpa()),
        pytest.raises(errors.KernelError) as caught,
    ):
        attend(*inputs, score=scores.InverseDistance())
    assert "Exponentials: nothing is cached of these keys" in str(caught.value)
    assert "Sdpa: scores by InverseDistanceComparison are not dot products" in str(caught.value)


def test_outside_using_it_is_not_asked(inputs) -> None:
    kernel = Exponentials()
    with kernels.using(kernel, kernels.Reference()):
        attend(*inputs, score=scores.Additive(SIZE, SIZE, HIDDEN))
    asked = len(kernel.read)
    attend(*inputs, score=scores.Additive(SIZE, SIZE, HIDDEN))
    assert asked == len(kernel.read) == 1
