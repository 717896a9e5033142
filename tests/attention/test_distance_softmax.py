"""Reads of all pairs in C agree with the reference, for any size, level and number of threads."""

import pytest
import torch
from torch import Tensor

from regard import attend, errors, kernels, masks, scores, selection
from regard.native import loader, parallel
from regard.native.eligibility import usable

pytestmark = pytest.mark.skipif(not usable(), reason="the C extension was not built")

SCORES = {
    "dot": scores.Dot(),
    "scaled": scores.ScaledDot(0.3),
    "learned": scores.ScaledDot(learned=True),
    "cosine": scores.Cosine(5.0),
    "gaussian": scores.Gaussian(2.0),
    "inverse": scores.InverseDistance(0.1),
}
family = pytest.mark.parametrize("score", SCORES.values(), ids=SCORES)
DISTANCE, DOT, REFERENCE = kernels.DistanceSoftmax(), kernels.DotSoftmax(), kernels.Reference()


@pytest.fixture(params=range(loader.level() + 1), autouse=True)
def _level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "level", lambda: request.param)


def drawn(*shapes: tuple[int, ...]) -> list[Tensor]:
    torch.manual_seed(3)
    return [torch.randn(shape) for shape in shapes]


def read(kernel: kernels.Kernel, *given: Tensor, **more) -> Tensor:
    with kernels.using(kernel), torch.no_grad():
        return attend(*given, **more).context


def native(score: scores.Score | None = None) -> kernels.Kernel:
    """The kernel in C that takes this score."""
    return DISTANCE if isinstance(score, scores.Gaussian | scores.InverseDistance) else DOT


def assert_agrees(*given: Tensor, **more) -> None:
    """At most twice as wrong as plain code in the same precision."""
    truth = read(REFERENCE, *(each.double() for each in given), **more)
    asked = REFERENCE, native(more.get("score"))
    plain, found = (read(kernel, *given, **more) - truth for kernel in asked)
    assert found.abs().max() <= 2 * plain.abs().max() + 1e-6


@family
@pytest.mark.parametrize("keys", [1, 15, 64, 65, 131])
@pytest.mark.parametrize("rows", [1, 5, 49])
def test_it_is_the_reference(score: scores.Score, rows: int, keys: int) -> None:
    assert_agrees(*drawn((2, 3, rows, 7), (2, 3, keys, 7), (2, 3, keys, 11)), score=score)


@family
def test_without_a_batch(score: scores.Score) -> None:
    assert_agrees(*drawn((13, 7), (19, 7), (19, 5)), score=score)


@family
def test_vectors_that_fill_tiles(score: scores.Score) -> None:
    assert_agrees(*drawn((2, 53, 64), (2, 128, 64), (2, 128, 67)), score=score)


@family
def test_items_may_share_their_keys(score: scores.Score) -> None:
    assert_agrees(*drawn((2, 3, 13, 8), (2, 1, 19, 8), (1, 3, 19, 5)), score=score)


@family
@pytest.mark.parametrize("threads", [2, 3, 50])
def test_any_number_of_threads(
    score: scores.Score, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = drawn((3, 53, 8), (3, 21, 8), (3, 21, 4))
    alone = read(native(score), *given, score=score)
    monkeypatch.setattr(parallel, "threads", lambda _: threads)
    assert torch.equal(read(native(score), *given, score=score), alone)


def test_a_temperature_and_heads_that_lie_apart() -> None:
    q, k, v = drawn((2, 13, 3, 8), (2, 19, 3, 8), (2, 19, 3, 5))
    apart = [each.transpose(1, 2) for each in (q, k, v)]
    assert_agrees(*apart, select=selection.Softmax(temperature=0.5))


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e2, 1e4])
def test_scores_of_any_size(size: float) -> None:
    q, k, v = drawn((1, 13, 8), (1, 19, 8), (1, 19, 5))
    assert_agrees(q * size, k, v, score=scores.Dot())


def test_close_pairs_far_from_the_origin_keep_their_digits() -> None:
    centre, q, k, v = drawn((1, 1, 16), (1, 5, 16), (1, 9, 16), (1, 9, 3))
    q, k = 1000 * centre + 1e-2 * q, 1000 * centre + 1e-2 * k
    assert_agrees(q, k, v, score=scores.Gaussian(1e-2))


def test_what_is_far_has_no_weight() -> None:
    """Not even a large value is seen through a weight that is 0."""
    q, k, v = torch.zeros(1, 2, 4), torch.zeros(1, 3, 4), torch.full((1, 3, 2), 1e30)
    k[0, 1:] += 1e3
    v[0, 0] = 1.0
    assert torch.equal(read(DISTANCE, q, k, v, score=scores.Gaussian()), torch.ones(1, 2, 2))


@family
def test_a_nonfinite_query_affects_its_row_alone(score: scores.Score) -> None:
    q, k, v = drawn((1, 9, 8), (1, 21, 8), (1, 21, 5))
    q[0, 4, 2] = torch.nan
    found = read(native(score), q, k, v, score=score)
    assert found[0, 4].isnan().all()
    assert found[0, [*range(4), *range(5, 9)]].isfinite().all()


def test_it_says_what_it_cannot() -> None:
    given = drawn((1, 3, 4), (1, 5, 4), (1, 5, 2))
    score = scores.Gaussian()
    for reason, more in (
        ("neither a bias nor a mask", {"score": score, "mask": masks.Causal()}),
        ("neither a bias nor a mask", {"score": score, "bias": torch.zeros(1, 3, 5)}),
        ("by softmax", {"score": score, "select": selection.Sparsemax()}),
        ("by DotComparison are not distances", {"score": scores.Dot()}),
        ("by AdditiveComparison are not distances", {"score": scores.Additive(4, 4, 3)}),
    ):
        with pytest.raises(errors.KernelError, match=reason):
            read(DISTANCE, *given, **more)
    with pytest.raises(errors.KernelError, match="float32"):
        read(DISTANCE, *(each.double() for each in given), score=score)
    learning = given[0].requires_grad_()
    with pytest.raises(errors.KernelError, match="gradient"), kernels.using(DISTANCE):
        attend(learning, *given[1:], score=score)
