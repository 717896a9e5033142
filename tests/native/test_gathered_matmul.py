"""Each query's own rows, read where they lie in C: the same as gathered, for everyone."""

import pytest
import torch
from torch import Tensor

from regard.attention.kernels import gathered_matmul as differentiable
from regard.native import gathered_matmul, loader, parallel
from regard.native.eligibility import usable

pytestmark = pytest.mark.skipif(not usable(), reason="the C extension was not built")

EXACT = {"rtol": 1e-5, "atol": 1e-5}
sizes = pytest.mark.parametrize("size", [1, 15, 16, 67, 133])


@pytest.fixture(params=range(loader.level() + 1), autouse=True)
def _level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "level", lambda: request.param)


def drawn(size: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Queries, rows, weights and places, of which many are the same."""
    torch.manual_seed(size)
    places = torch.randint(0, 19, (11, 7))
    return torch.randn(11, size), torch.randn(19, size), torch.randn(11, 7), places


@sizes
def test_products(size: int) -> None:
    queries, rows, _, places = drawn(size)
    truth = (queries[:, None, :].double() * rows[places].double()).sum(-1)
    found = gathered_matmul.dot(queries, rows, places)
    torch.testing.assert_close(found.double(), truth, **EXACT)


@sizes
def test_sums(size: int) -> None:
    _, rows, weights, places = drawn(size)
    truth = (weights[..., None].double() * rows[places].double()).sum(1)
    found = gathered_matmul.weighted_sum(weights, rows, places)
    torch.testing.assert_close(found.double(), truth, **EXACT)


@sizes
@pytest.mark.parametrize("threads", [1, 3, 50])
def test_spread(size: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    queries, rows, weights, places = drawn(size)
    added = (weights[..., None].double() * queries[:, None, :].double()).flatten(0, 1)
    truth = torch.zeros_like(rows).double().index_add(0, places.flatten(), added)
    monkeypatch.setattr(parallel, "threads", lambda _: threads)
    found = gathered_matmul.scatter_add(weights, queries, places, len(rows))
    torch.testing.assert_close(found.double(), truth, **EXACT)


def test_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    queries, rows, weights, places = drawn(67)

    def all_three() -> list[Tensor]:
        return [
            gathered_matmul.dot(queries, rows, places),
            gathered_matmul.weighted_sum(weights, rows, places),
            gathered_matmul.scatter_add(weights, queries, places, len(rows)),
        ]

    alone = all_three()
    monkeypatch.setattr(parallel, "threads", lambda _: 4)
    assert all(map(torch.equal, all_three(), alone))


def test_what_lies_apart_in_memory_is_read_too() -> None:
    queries, rows, weights, places = drawn(16)
    apart = [each.mT.contiguous().mT for each in (queries, rows, weights, places)]
    for name, given, strided in (
        ("_dot", (queries, rows, places), (apart[0], apart[1], apart[3])),
        ("_weighted_sum", (weights, rows, places), (apart[2], apart[1], apart[3])),
        (
            "_scatter_add",
            (weights, queries, places, rows),
            (apart[2], apart[0], apart[3], apart[1]),
        ),
    ):
        how = getattr(differentiable, name)
        assert torch.equal(how(*strided), how(*given))
