"""Scores by distance: against torch.cdist, and kernel regression by hand."""

import math

import pytest
import torch
from torch import Tensor

from regard import Attention, attend, scores, selection
from regard.attention.scores import Score

BATCH, QUERIES, KEYS, SIZE = 2, 3, 7, 5
EXACT = {"rtol": 1e-10, "atol": 1e-12}


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(5)


def draw() -> tuple[Tensor, Tensor]:
    shapes = [(BATCH, QUERIES, SIZE), (BATCH, KEYS, SIZE)]
    queries, keys = (torch.randn(*shape, dtype=torch.float64) for shape in shapes)
    return queries, keys


def distances(queries: Tensor, keys: Tensor) -> Tensor:
    return torch.cdist(queries, keys, compute_mode="donot_use_mm_for_euclid_dist")


def weights(score: Score, queries: Tensor, keys: Tensor) -> Tensor:
    return Attention(score).double()(queries, keys, keys).weights


def probabilities(score: Score, queries: Tensor, keys: Tensor) -> Tensor:
    """sigmoid(e) of each pair: the probability that monotonic attention stops at its one key."""
    reader = Attention(score, selection.Monotonic(noise=0.0)).to(queries.dtype)
    queries, keys = queries[..., :, None, None, :], keys[..., None, :, None, :]
    return reader(queries, keys, torch.ones_like(keys)).weights[..., 0, 0]


@pytest.mark.parametrize("floor", [1e-3, 0.5, 3.0])
def test_inverse_distance(floor: float) -> None:
    queries, keys = draw()
    score = scores.InverseDistance(floor)
    expected = 1 / distances(queries, keys).clamp(min=floor)
    torch.testing.assert_close(weights(score, queries, keys), expected.softmax(-1), **EXACT)
    torch.testing.assert_close(probabilities(score, queries, keys), expected.sigmoid(), **EXACT)


@pytest.mark.parametrize("floor", [0.1, 0.5])
def test_at_a_station_the_score_is_1_over_floor_and_flat(floor: float) -> None:
    queries, keys = draw()
    keys[:, :QUERIES] = queries  # the first keys are where the queries are
    keys[:, QUERIES] = queries[:, 0] + 0.9 * floor / math.sqrt(SIZE)  # and one is nearly there
    queries.requires_grad_()
    keys.requires_grad_()
    found = probabilities(scores.InverseDistance(floor), queries, keys)
    here = torch.stack([*(found[:, row, row] for row in range(QUERIES)), found[:, 0, QUERIES]])
    torch.testing.assert_close(here, torch.full_like(here, 1 / floor).sigmoid(), **EXACT)
    for gradient in torch.autograd.grad(here.sum(), [queries, keys]):
        assert not gradient.any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("floor", [1e-3, 1e-15])
def test_at_a_station_only_it_is_read(floor: float, dtype: torch.dtype) -> None:
    queries, keys = (tensor.to(dtype) for tensor in draw())
    queries = keys[:, :QUERIES].clone().requires_grad_()
    context, found = attend(queries, keys, keys, score=scores.InverseDistance(floor))
    expected = torch.eye(KEYS, dtype=dtype)[:QUERIES].expand_as(found)
    torch.testing.assert_close(found, expected)
    (gradient,) = torch.autograd.grad(context.sum(), queries)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("sigma", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("learned", [False, True])
def test_gaussian(sigma: float, learned: bool) -> None:
    queries, keys = draw()
    score = scores.Gaussian(sigma, learned=learned)
    expected = -distances(queries, keys).square() / (2 * sigma**2)
    # A learned width starts as a float32.
    exact = {"rtol": 1e-4, "atol": 1e-7} if learned else EXACT
    torch.testing.assert_close(weights(score, queries, keys), expected.softmax(-1), **exact)
    torch.testing.assert_close(probabilities(score, queries, keys), expected.sigmoid(), **exact)
    context = attend(queries, keys, keys, score=score).context
    torch.testing.assert_close(context, expected.softmax(-1) @ keys, **exact)


def bump(x: float) -> float:
    return math.sin(3 * x) + x


def nadaraya_watson(at: float, points: list[float], sigma: float, origin: float) -> float:
    powers = [math.exp(-((at - point) ** 2) / (2 * sigma**2)) for point in points]
    measured = [bump(point - origin) for point in points]
    return sum(k * y for k, y in zip(powers, measured, strict=True)) / sum(powers)


@pytest.mark.parametrize("origin", [0.0, 1024.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gaussian_with_softmax_is_kernel_regression(dtype: torch.dtype, origin: float) -> None:
    sigma = 0.11
    points = [origin + step / 32 for step in range(67)]  # exact in float32, far away too
    positions = [origin + step / 16 + 1 / 128 for step in range(5, 29)]
    measured = torch.tensor([[bump(point - origin)] for point in points], dtype=dtype)
    queries, keys = (torch.tensor(at, dtype=dtype)[:, None] for at in (positions, points))
    context = attend(queries, keys, measured, score=scores.Gaussian(sigma)).context
    by_hand = [nadaraya_watson(at, points, sigma, origin) for at in positions]
    near = 1e-5 if dtype == torch.float32 else 1e-12
    assert context[:, 0].tolist() == pytest.approx(by_hand, abs=near)
    # It is a regression: in the middle it follows the function that was measured.
    assert by_hand == pytest.approx([bump(at - origin) for at in positions], abs=0.1)
