"""Dropout: the rate, the same elements in backward, and independence between elements."""

import math

import pytest
import torch

from regard.native import dropout, loader, parallel
from regard.native.eligibility import usable
from regard.seq2seq.nn.dropout import Dropout

COUNT = 1 << 18


def kept(rate: float, seed: int, count: int = COUNT) -> torch.Tensor:
    torch.manual_seed(seed)
    return Dropout(rate)(torch.ones(count)) != 0


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.5, 0.9])
def test_the_rate(rate: float) -> None:
    """By a z-test over 2²⁴ draws, wrong once in ten million times."""
    count = sum(int(kept(rate, seed).sum()) for seed in range(64))
    total = 64 * COUNT
    z = (count - total * (1 - rate)) / math.sqrt(total * rate * (1 - rate))
    assert abs(z) < 5.4


@pytest.mark.parametrize("lag", [1, 2, 3, 16, 64, 128, 512])
def test_elements_are_independent(lag: int) -> None:
    """Two elements are both kept or both dropped as often as by chance."""
    same, total = 0, 0
    for seed in range(16):
        one = kept(0.5, seed)
        same += int((one[lag:] == one[:-lag]).sum())
        total += COUNT - lag
    assert abs(same - total / 2) / math.sqrt(total / 4) < 5.4


def test_seeds_are_independent() -> None:
    one, other = kept(0.5, 1), kept(0.5, 2)
    assert abs(int((one == other).sum()) - COUNT / 2) / math.sqrt(COUNT / 4) < 5.4
    assert torch.equal(one, kept(0.5, 1))


def test_backward_drops_the_same_elements() -> None:
    inputs = torch.randn(7, 11, requires_grad=True)
    outputs = Dropout(0.4)(inputs)
    (gradient,) = torch.autograd.grad(outputs.sum(), inputs)
    torch.testing.assert_close(outputs, inputs * gradient)
    assert gradient.unique().tolist() == pytest.approx([0.0, 1 / 0.6])


@pytest.mark.skipif(not usable(), reason="the C extension was not built")
def test_the_same_on_every_processor_and_number_of_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inputs = torch.randn(1000, 33)
    found = dropout.dropout(inputs, 0.3, 12345)
    for level in range(loader.level() + 1):
        monkeypatch.setattr(loader, "level", lambda level=level: level)
        for threads in (1, 2, 7):
            monkeypatch.setattr(parallel, "threads", lambda _, threads=threads: threads)
            assert torch.equal(dropout.dropout(inputs, 0.3, 12345), found)


def test_eval_zero_rate_dtypes_and_strides() -> None:
    inputs = torch.randn(3, 4)
    assert Dropout(0.5).eval()(inputs) is inputs
    assert Dropout(0.0)(inputs) is inputs
    assert Dropout(0.5)(inputs.double()).dtype == torch.float64
    assert Dropout(0.5)(inputs[:, ::2]).shape == (3, 2)
    with pytest.raises(ValueError, match="between 0 and 1"):
        Dropout(1.5)
