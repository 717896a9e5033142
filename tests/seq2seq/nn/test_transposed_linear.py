"""Linear layers by transposed weights: the same products, and a cache that follows its weight."""

import gc

import pytest
import torch
from torch import nn

from regard.native import loader, parallel, transpose
from regard.native.eligibility import usable
from regard.seq2seq.nn import transposed_linear as module
from regard.seq2seq.nn.transposed_linear import apply_linear, plain_linear, transposed_weight


@pytest.mark.parametrize("shape", [(3,), (1, 3), (5, 3), (2, 4, 3), (0, 3)])
@pytest.mark.parametrize("bias", [False, True])
def test_it_is_the_layer(shape: tuple[int, ...], bias: bool) -> None:
    torch.manual_seed(1)
    linear, inputs = nn.Linear(3, 7, bias=bias), torch.randn(shape)
    expected = linear(inputs)
    with torch.no_grad():
        torch.testing.assert_close(apply_linear(inputs, linear), expected)
        torch.testing.assert_close(
            plain_linear(inputs.double(), linear.weight.double()).float(),
            inputs @ linear.weight.mT,
        )
    assert apply_linear(inputs, linear).requires_grad


@pytest.mark.skipif(not usable(), reason="the C extension was not built")
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("level", range(loader.level() + 1))
@pytest.mark.parametrize("shape", [(1, 1), (16, 16), (15, 33), (48, 17), (130, 64), (0, 3)])
def test_the_native_transpose(
    shape: tuple[int, int], level: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "level", lambda: level)
    monkeypatch.setattr(parallel, "threads", lambda _: threads)
    matrix = torch.randn(shape)
    assert torch.equal(transpose.transposed(matrix), matrix.mT)


def test_a_changed_weight_is_transposed_again() -> None:
    linear, inputs = nn.Linear(3, 7), torch.ones(2, 3)
    with torch.no_grad():
        for change in (
            lambda: linear.weight.mul_(2),
            lambda: linear.load_state_dict(nn.Linear(3, 7).state_dict()),
            lambda: setattr(linear.weight, "data", torch.randn(7, 3)),
            lambda: setattr(linear, "weight", nn.Parameter(torch.randn(7, 3))),
        ):
            apply_linear(inputs, linear)
            change()
            torch.testing.assert_close(apply_linear(inputs, linear), linear(inputs))


def test_the_cache_lives_as_long_as_its_weight() -> None:
    weight = nn.Parameter(torch.randn(4, 5))
    assert transposed_weight(weight) is transposed_weight(weight)
    gc.collect()
    count = len(module._cache)
    del weight
    gc.collect()
    assert len(module._cache) == count - 1


def test_inference_weights_have_no_version_and_are_not_cached() -> None:
    with torch.inference_mode():
        linear = nn.Linear(3, 7)
        torch.testing.assert_close(apply_linear(torch.ones(2, 3), linear), linear(torch.ones(2, 3)))
