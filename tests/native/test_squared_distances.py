"""Squared distances by subtraction in C: exact where it matters, and the same for everyone."""

import pytest
import torch

from regard import attend, kernels, scores
from regard.attention.kernels.squared_distances import squared_distances
from regard.native import loader, parallel
from regard.native.eligibility import usable

pytestmark = pytest.mark.skipif(not usable(), reason="the C extension was not built")


@pytest.fixture(params=range(loader.level() + 1), autouse=True)
def _level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "level", lambda: request.param)


@pytest.mark.parametrize("rows", [2, 3, 4, 9])
@pytest.mark.parametrize("keys", [1, 15, 16, 17, 40])
@pytest.mark.parametrize("size", [1, 2, 7, 64])
def test_they_are_those_of_plain_code(rows: int, keys: int, size: int) -> None:
    torch.manual_seed(1)
    q, k = torch.randn(2, 3, rows, size), torch.randn(2, 3, keys, size)
    truth = (q.double()[..., :, None, :] - k.double()[..., None, :, :]).square().sum(-1)
    torch.testing.assert_close(squared_distances(q, k).double(), truth, rtol=1e-6, atol=1e-12)


def test_close_pairs_far_from_the_origin_keep_their_digits() -> None:
    torch.manual_seed(2)
    centre = 1000 * torch.randn(1, 1, 16)
    q = centre + 1e-2 * torch.randn(1, 5, 16)
    k = centre + 1e-2 * torch.randn(1, 9, 16)
    truth = (q.double()[:, :, None] - k.double()[:, None]).square().sum(-1)
    torch.testing.assert_close(squared_distances(q, k).double(), truth, rtol=1e-6, atol=0.0)


@pytest.mark.parametrize("threads", [2, 3, 50])
def test_any_number_of_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    q, k = torch.randn(3, 11, 8), torch.randn(3, 21, 8)
    alone = squared_distances(q, k)
    monkeypatch.setattr(parallel, "threads", lambda _: threads)
    assert torch.equal(squared_distances(q, k), alone)


def test_items_may_share_their_keys() -> None:
    q, k = torch.randn(2, 3, 5, 8), torch.randn(2, 1, 7, 8)
    assert torch.equal(squared_distances(q, k), squared_distances(q, k.expand(2, 3, 7, 8)))


@pytest.mark.parametrize("score", [scores.InverseDistance(), scores.Gaussian(0.5)])
def test_a_read_in_blocks_is_a_read(score: scores.Score, monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = torch.randn(2, 13, 6), torch.randn(2, 9, 6), torch.randn(2, 9, 4)
    with kernels.using(kernels.Reference()), torch.no_grad():
        whole = attend(q, k, v, score=score)
        monkeypatch.setattr("regard.attention.kernels.reference.DISTANCE_BLOCK", 2 * 9 * 4)
        parts = attend(q, k, v, score=score)
        torch.testing.assert_close(parts.context, whole.context)
        torch.testing.assert_close(parts.weights, whole.weights)


def test_a_broken_vector_is_seen() -> None:
    q, k = torch.randn(1, 3, 4), torch.randn(1, 5, 4)
    q[0, 1, 2], k[0, 4, 0] = torch.nan, torch.inf
    found = squared_distances(q, k)
    assert found[0, 1].isnan().all()
    assert found[0, 0, 4] == torch.inf
    assert found[0, 0, :4].isfinite().all()
