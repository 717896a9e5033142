"""Dropout: the right share, the same again on the way back, and independent from place to place."""

import math

import pytest
import torch

from regard.attention.kernels import native
from regard.seq2seq.nn.dropout import Dropout

COUNT = 1 << 18


def drawn(rate: float, seed: int, count: int = COUNT) -> torch.Tensor:
    torch.manual_seed(seed)
    return Dropout(rate)(torch.ones(count)) != 0


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.5, 0.9])
def test_the_share_is_the_rate(rate: float) -> None:
    """By a z-test over 2²⁴ draws, wrong once in ten million times."""
    kept = sum(int(drawn(rate, seed).sum()) for seed in range(64))
    total = 64 * COUNT
    z = (kept - total * (1 - rate)) / math.sqrt(total * rate * (1 - rate))
    assert abs(z) < 5.4


@pytest.mark.parametrize("lag", [1, 2, 3, 16, 64, 128, 512])
def test_places_know_nothing_of_each_other(lag: int) -> None:
    """How often two places share their fate is as often as chance has it."""
    same, total = 0, 0
    for seed in range(16):
        one = drawn(0.5, seed)
        same += int((one[lag:] == one[:-lag]).sum())
        total += COUNT - lag
    assert abs(same - total / 2) / math.sqrt(total / 4) < 5.4


def test_seeds_know_nothing_of_each_other() -> None:
    one, other = drawn(0.5, 1), drawn(0.5, 2)
    assert abs(int((one == other).sum()) - COUNT / 2) / math.sqrt(COUNT / 4) < 5.4
    assert torch.equal(one, drawn(0.5, 1))


def test_the_way_back_goes_where_the_way_forth_went() -> None:
    inputs = torch.randn(7, 11, requires_grad=True)
    outputs = Dropout(0.4)(inputs)
    (slope,) = torch.autograd.grad(outputs.sum(), inputs)
    torch.testing.assert_close(outputs, inputs * slope)
    assert slope.unique().tolist() == pytest.approx([0.0, 1 / 0.6])


@pytest.mark.skipif(native.library() is None, reason="the C kernels were not built here")
def test_the_same_on_every_processor_and_number_of_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inputs = torch.randn(1000, 33)
    found = native.dropout(inputs, 0.3, 12345)
    for level in range(native.level() + 1):
        monkeypatch.setattr(native, "level", lambda level=level: level)
        for threads in (1, 2, 7):
            monkeypatch.setattr(native, "threads", lambda _, threads=threads: threads)
            assert torch.equal(native.dropout(inputs, 0.3, 12345), found)


def test_what_it_leaves_alone() -> None:
    inputs = torch.randn(3, 4)
    assert Dropout(0.5).eval()(inputs) is inputs
    assert Dropout(0.0)(inputs) is inputs
    assert Dropout(0.5)(inputs.double()).dtype == torch.float64
    assert Dropout(0.5)(inputs[:, ::2]).shape == (3, 2)
    with pytest.raises(ValueError, match="between 0 and 1"):
        Dropout(1.5)
