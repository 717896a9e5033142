"""Vectors of length 1, in one walk over them."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from regard import attend, scores
from regard.attention.scores.cosine import MIN_NORM
from regard.native import loader, parallel
from regard.native.eligibility import usable
from regard.native.l2_normalize import l2_normalize

BUILT = usable()
pytestmark = pytest.mark.skipif(not BUILT, reason="the C extension was not built")


def exact(vectors: Tensor) -> Tensor:
    return functional.normalize(vectors.double(), dim=-1, eps=MIN_NORM)


@pytest.mark.parametrize("level", range(loader.level() + 1))
@pytest.mark.parametrize("size", [1, 13, 64, 131])
@pytest.mark.parametrize("scale", [1e-7, 1.0, 1e25])
def test_it_is_at_most_twice_as_wrong_as_plain_code(
    level: int, size: int, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "level", lambda: level)
    torch.manual_seed(0)
    vectors = torch.randn(3, 17, size) * scale
    vectors[1, 5] = 0.0
    truth = exact(vectors)
    found = l2_normalize(vectors, MIN_NORM).double()
    plain = functional.normalize(vectors.double().float(), dim=-1, eps=MIN_NORM).double()
    least = torch.finfo(torch.float32).eps
    assert (found - truth).abs().max() <= max(least, 2 * (plain - truth).abs().max())
    assert (found[1, 5] == 0).all()


@pytest.mark.parametrize("threads", [1, 2, 3, 99])
def test_any_number_of_threads_and_any_strides(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    vectors = torch.randn(7, 11, 5).transpose(0, 2)
    monkeypatch.setattr(parallel, "threads", lambda _: threads)
    torch.testing.assert_close(l2_normalize(vectors, MIN_NORM).double(), exact(vectors))
    assert l2_normalize(torch.empty(3, 0, 5), MIN_NORM).shape == (3, 0, 5)


def test_what_is_not_finite_breaks_its_own_row_alone() -> None:
    vectors = torch.ones(3, 5)
    vectors[1, 2] = torch.nan
    found = l2_normalize(vectors, MIN_NORM)
    assert found[1].isnan().all()
    assert found[::2].isfinite().all()


def test_cosine_is_the_same_with_a_gradient() -> None:
    torch.manual_seed(0)
    queries, keys, values = torch.randn(3, 7, 5), torch.randn(3, 11, 5), torch.randn(3, 11, 2)
    queries, keys = queries.requires_grad_(), keys.requires_grad_()
    by_torch = attend(queries, keys, values, score=scores.Cosine(7.0))
    with torch.no_grad():
        in_c = attend(queries, keys, values, score=scores.Cosine(7.0))
    torch.testing.assert_close(in_c.context, by_torch.context)
