"""Linear layers in int8: near the float ones, and the same in any batch."""

import pytest
import torch
from torch import nn

from regard.native import loader, parallel
from regard.native.eligibility import usable
from regard.seq2seq.decoding import DecodingError, quantized
from regard.seq2seq.decoding.int8 import Int8Linear, refusals

SIZE, OUT = 193, 307


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(5)


@pytest.mark.parametrize("bias", [True, False])
def test_the_error_is_about_a_hundredth(bias: bool) -> None:
    linear = nn.Linear(SIZE, OUT, bias=bias)
    inputs = torch.randn(3, 11, SIZE)
    expected, found = linear(inputs), Int8Linear(linear)(inputs)
    assert found.shape == expected.shape
    assert (found - expected).norm() / expected.norm() < 0.015


def test_scales_are_for_each_row_and_each_output() -> None:
    linear = nn.Linear(SIZE, OUT, bias=False)
    inputs = torch.randn(7, SIZE)
    expected = Int8Linear(linear)(inputs)
    inputs[2] *= 2**17
    inputs[4] = 0.0
    with torch.no_grad():
        linear.weight[3] *= 2**13
    # A large row or output is as exact as before, and costs the others no precision.
    expected[2] *= 2**17
    expected[4] = 0.0
    expected[:, 3] *= 2**13
    assert torch.equal(Int8Linear(linear)(inputs), expected)


def test_a_row_is_bit_identical_alone_and_in_a_batch() -> None:
    quantised = Int8Linear(nn.Linear(SIZE, OUT))
    inputs = torch.randn(17, SIZE)
    together = quantised(inputs)
    for row in (0, 5, 16):
        assert torch.equal(quantised(inputs[row]), together[row])
    assert quantised(inputs[:0]).shape == (0, OUT)


def test_only_large_layers_are_replaced_and_the_model_stays() -> None:
    inner = nn.Sequential(nn.Linear(SIZE, OUT), nn.Tanh(), nn.Linear(OUT, 3))
    model = nn.Sequential(inner, nn.Linear(3, 5)).train()
    quantised = quantized(model, min_weights=SIZE * OUT)
    kinds = [type(part) for part in quantised.modules() if not list(part.children())]
    assert kinds == [Int8Linear, nn.Tanh, nn.Linear, nn.Linear]
    assert type(inner[0]) is nn.Linear
    assert model.training
    assert not quantised.training
    inputs = torch.randn(4, SIZE)
    torch.testing.assert_close(quantised(inputs), model(inputs), rtol=0.05, atol=0.02)
    assert isinstance(quantized(nn.Linear(SIZE, OUT), min_weights=1), Int8Linear)


def test_the_weight_is_the_dequantised_one() -> None:
    linear = nn.Linear(SIZE, OUT)
    quantised = Int8Linear(linear)
    step = linear.weight.abs().amax(1, keepdim=True) / 127
    assert ((quantised.weight - linear.weight).abs() <= 0.5001 * step).all()
    one = torch.eye(SIZE)  # rounded to 127 levels it is still itself
    torch.testing.assert_close(quantised(one), one @ quantised.weight.mT + linear.bias)


def test_a_quantised_model_can_be_saved_and_loaded() -> None:
    quantised, other = (Int8Linear(nn.Linear(SIZE, OUT)) for _ in range(2))
    inputs = torch.randn(3, SIZE)
    assert not torch.equal(quantised(inputs), other(inputs))
    other.load_state_dict(quantised.state_dict())
    assert torch.equal(quantised(inputs), other(inputs))


def test_what_cannot_be_done_is_refused_with_the_reason() -> None:
    small = nn.Linear(2, 3)
    with pytest.raises(DecodingError, match="no linear layer of 131072 weights or more"):
        quantized(small)
    elsewhere = nn.Linear(SIZE, OUT, device="meta")
    assert refusals(elsewhere, 1) == ["it is on meta, and int8 is for a CPU; move it there"]


def test_a_torch_without_the_product_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise RuntimeError("not for this machine")

    monkeypatch.setattr(torch, "_int_mm", missing)
    with pytest.raises(DecodingError, match="no exact product of int8"):
        quantized(nn.Linear(SIZE, OUT), min_weights=1)


@pytest.mark.skipif(not usable(), reason="the C extension was not built")
@pytest.mark.parametrize("level", range(loader.level() + 1))
@pytest.mark.parametrize("bias", [True, False])
def test_in_c_it_is_what_torch_makes_of_it(
    level: int, bias: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    quantised = Int8Linear(nn.Linear(SIZE, OUT, bias=bias))
    inputs = torch.randn(17, SIZE) * torch.logspace(-44, 30, 17)[:, None]
    inputs[3], inputs[5, 7], inputs[6, 2] = 0.0, torch.nan, torch.inf
    monkeypatch.setattr(loader, "level", lambda: level)
    for threads in (1, 3):
        monkeypatch.setattr(parallel, "threads", lambda _, count=threads: count)
        found = quantised(inputs)
        with monkeypatch.context() as without:
            without.setattr(loader, "library", lambda: None)
            truth = quantised(inputs)
        assert found[[5, 6]].isnan().all()
        rest = [row for row in range(17) if row not in (5, 6)]
        torch.testing.assert_close(found[rest], truth[rest], rtol=1e-5, atol=0.0)
