"""Sums of very many terms keep their digits, whatever torch's own sums do on this processor."""

import torch

from regard.attention.core.numerics import MAX_TERMS, matmul, softmax

COUNT = 16 * MAX_TERMS


def test_many_weights_sum_to_one() -> None:
    """Of like scores: each sum of floats grows by equal steps, which are rounded the same way."""
    torch.manual_seed(0)
    weights = softmax(torch.rand(2, COUNT) / 100, None)
    torch.testing.assert_close(weights.double().sum(-1), torch.ones(2).double(), atol=1e-6, rtol=0)


def test_many_hidden_weights_are_zero_and_the_others_sum_to_one() -> None:
    allowed = torch.arange(COUNT) % 3 > 0
    both = torch.stack([allowed, torch.zeros_like(allowed)])
    weights = softmax(torch.zeros(2, COUNT), both)
    assert not weights[:, ~allowed].any()
    assert not weights[1].any()
    torch.testing.assert_close(
        weights[0].double().sum(), torch.ones(()).double(), atol=1e-6, rtol=0
    )


def test_a_sum_of_many_values_keeps_its_digits() -> None:
    torch.manual_seed(0)
    weights, values = torch.rand(3, COUNT) / COUNT, torch.rand(COUNT, 4)
    truth = weights.double() @ values.double()
    torch.testing.assert_close(matmul(weights, values).double(), truth, atol=0, rtol=1e-5)
    torch.testing.assert_close(matmul(weights, values, 0.5).double(), truth / 2, atol=0, rtol=1e-5)


def test_many_keys_that_beams_share() -> None:
    torch.manual_seed(0)
    weights, values = torch.rand(2, 3, 1, 2 * MAX_TERMS + 5), torch.rand(2, 1, 2 * MAX_TERMS + 5, 4)
    truth = weights.double() @ values.double()
    torch.testing.assert_close(matmul(weights, values).double(), truth, atol=0, rtol=1e-5)
