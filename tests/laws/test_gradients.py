"""Gradients of first and second order agree with differences, for everything differentiable."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from regard import Attention, MultiHead, attend, kernels, masks, scores, selection
from tests.catalogue import SCORES, SELECTIONS, SIZE, Mechanism

# Thousands of evaluations of functions whose shapes the laws have checked already.
pytestmark = pytest.mark.usefixtures("unchecked")

SMOOTH_SCORES = [score for score in SCORES if score.smooth]
SMOOTH_SELECTIONS = [select for select in SELECTIONS if select.smooth]
BATCH, QUERIES, KEYS, VALUE_SIZE = 2, 3, 4, 2


def _inputs() -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(3)
    shapes = (QUERIES, SIZE), (KEYS, SIZE), (KEYS, VALUE_SIZE)
    made = (torch.randn(BATCH, *shape, dtype=torch.float64) for shape in shapes)
    queries, keys, values = (tensor.requires_grad_() for tensor in made)
    return queries, keys, values


def _as_function(module: torch.nn.Module, mask: masks.Mask | None) -> Callable[..., Tensor]:
    """The context as a function of everything that may learn; the draws are always the same."""
    names = [name for name, _ in module.named_parameters()]

    def read(queries: Tensor, keys: Tensor, values: Tensor, *parameters: Tensor) -> Tensor:
        torch.manual_seed(5)
        given = dict(zip(names, parameters, strict=True))
        inputs = (queries, keys, values)
        return torch.func.functional_call(module, given, inputs, {"mask": mask}).context

    return read


def _check(module: torch.nn.Module, mask: masks.Mask | None) -> None:
    module = module.double().train()
    learned = [parameter.detach().clone().requires_grad_() for parameter in module.parameters()]
    function, inputs = _as_function(module, mask), (*_inputs(), *learned)
    # Fast mode compares along random directions: as strict, in two evaluations rather than many.
    assert gradcheck(function, inputs, fast_mode=True)
    assert gradgradcheck(function, inputs, fast_mode=True)


def _mask() -> masks.Mask:
    """Some pairs hidden, the second item hidden whole."""
    return masks.Causal() & masks.Lengths([3, 0])


@pytest.mark.parametrize("score", SMOOTH_SCORES, ids=str)
@pytest.mark.parametrize("masked", [False, True], ids=["open", "masked"])
def test_every_score(score: Mechanism, masked: bool) -> None:
    _check(Attention(score.make()), _mask() if masked else None)


@pytest.mark.parametrize("select", SMOOTH_SELECTIONS, ids=str)
@pytest.mark.parametrize("masked", [False, True], ids=["open", "masked"])
def test_every_selection(select: Mechanism, masked: bool) -> None:
    _check(Attention(scores.Additive(SIZE, SIZE, 3), select.make()), _mask() if masked else None)


@pytest.mark.parametrize("alpha", [1.2, 1.5, 1.8, 2.0])
def test_every_alpha(alpha: float) -> None:
    _check(Attention(select=selection.Entmax(alpha)), None)


@pytest.mark.parametrize("key_heads", [4, 2], ids=["heads", "groups"])
def test_heads(key_heads: int) -> None:
    torch.manual_seed(7)
    make = lambda: Attention(scores.Cosine(learned=True))
    multi = MultiHead(make, 4, SIZE, SIZE, 2, key_heads, value_size=VALUE_SIZE)
    _check(multi, _mask())


@pytest.mark.parametrize("score", ["Dot", "ScaledDot", "Bilinear", "Cosine-learned", "Location"])
@pytest.mark.parametrize("mask", [None, masks.Causal(), masks.Lengths([4, 0])], ids=str)
def test_the_fused_dot_product(score: str, mask: masks.Mask | None) -> None:
    attention = Attention({str(s): s for s in SCORES}[score].make())
    with kernels.using(kernels.Sdpa()):
        _check(attention, mask)


def test_a_bias_learns() -> None:
    queries, keys, values = _inputs()
    bias = torch.randn(1, QUERIES, KEYS, dtype=torch.float64, requires_grad=True)
    read = lambda *given: attend(*given[:3], mask=masks.Causal(), bias=given[3]).context
    assert gradcheck(read, (queries, keys, values, bias), fast_mode=True)
    assert gradgradcheck(read, (queries, keys, values, bias), fast_mode=True)


@pytest.mark.parametrize("score", SMOOTH_SCORES, ids=str)
def test_weights_asked_for_later_learn_too(score: Mechanism) -> None:
    attention = Attention(score.make()).double()
    weights = lambda *given: attention(*given).weights
    queries, keys, values = _inputs()
    assert gradcheck(weights, (queries, keys, values.detach()), fast_mode=True)


def test_weights_looked_at_without_a_gradient_still_have_one_later() -> None:
    queries, keys, values = _inputs()
    with kernels.using(kernels.Sdpa()):
        reading = attend(queries, keys, values)
    with torch.no_grad():
        assert not reading.weights.requires_grad
    assert reading.weights.requires_grad


@pytest.mark.parametrize("score", SCORES, ids=str)
def test_a_fully_masked_query_has_no_gradient(score: Mechanism) -> None:
    attention = Attention(score.make()).double()
    inputs = _inputs()
    attention(*inputs, mask=masks.Lengths([0, 0])).context.sum().backward()
    learned = [*inputs, *attention.parameters()]
    assert all(t.grad is None or (t.grad == 0).all() for t in learned)
