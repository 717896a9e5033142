"""How sparse weights are found: Newton's steps and sorting, held to bisection in float64."""

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from regard.attention.selection import entmax_newton, entmax_traceable
from regard.attention.selection.entmax import entmax

ALPHAS = [1.01, 1.3, 1.5, 1.9, 2.0, 4.0]
SHAPES = [(3, 1), (5, 7), (3, 32), (3, 33), (7, 257), (1009, 13), (211, 61), (37, 263), (5, 4099)]
"""Some are sorted whole, some in part, some not at all; some in blocks, and in blocks of blocks."""
SPREADS = [0.0, 1e-3, 1.0, 30.0, 1e30]
forward_mode = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
"""Torch uses it itself, the first time."""
each_alpha = pytest.mark.parametrize("alpha", ALPHAS)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(17)


def bisected(scores: Tensor, alpha: float | Tensor) -> Tensor:
    """The weights by bisection alone, in float64 to the last bit."""
    scaled = (alpha - 1) * (scores.double() - scores.double().amax(-1, keepdim=True))
    powers = lambda threshold: (scaled - threshold).clamp(min=0) ** (1 / (alpha - 1))
    low = scaled.new_full((*scaled.shape[:-1], 1), -1)
    for bit in range(1, 60):
        high = low + 0.5**bit
        low = torch.where(powers(high).sum(-1, keepdim=True) >= 1, high, low)
    return powers(low)


def assert_bisected(scores: Tensor, alpha: float | Tensor) -> None:
    """The same as by bisection, for float32 and float64, and where there is nothing to look at.

    Compared before the root is taken that α > 2 takes, which is steep at 0.
    """
    power = max(1.0, float(torch.as_tensor(alpha).max()) - 1)
    for dtype, tolerance in ((torch.float32, 2e-5), (torch.float64, 1e-12)):
        given = scores.to(dtype)
        copy = given.clone()
        chosen = alpha.to(dtype) if isinstance(alpha, Tensor) else alpha
        expected = bisected(given, chosen).pow(power)
        for way in (entmax_newton.entmax, entmax_traceable.entmax):
            found = way(given, chosen)
            assert found.dtype == dtype
            close = found.double().pow(power)
            torch.testing.assert_close(close, expected, rtol=0, atol=tolerance)
        assert torch.equal(given, copy)


@each_alpha
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("spread", SPREADS)
def test_as_by_bisection(alpha: float, shape: tuple[int, int], spread: float) -> None:
    assert_bisected(spread * torch.randn(shape, dtype=torch.float64), alpha)


@pytest.mark.parametrize("alpha", [1.01, 1.5, 2.0])
@pytest.mark.parametrize("shape", [(3, 41), (401, 41), (5, 4099)], ids=str)
def test_ties(alpha: float, shape: tuple[int, int]) -> None:
    assert_bisected(torch.randint(0, 3, shape).double(), alpha)


@pytest.mark.parametrize("alpha", [1.3, 1.5, 2.0])
@pytest.mark.parametrize("rows", [3, 61], ids=["few", "many"])
def test_the_best_keys_are_all_in_one_block(alpha: float, rows: int) -> None:
    """Of each block the first guess knows the best key only."""
    keys = 1031
    scores = 0.1 * torch.randn(rows, keys, dtype=torch.float64) - 5
    scores[
        :, 3 : entmax_newton.BLOCK * (keys // entmax_newton.BLOCK) : keys // entmax_newton.BLOCK
    ] += 5
    assert_bisected(scores, alpha)


@pytest.mark.parametrize("alpha", [1.3, 1.5, 2.0])
@pytest.mark.parametrize("rows", [3, 61], ids=["few", "many"])
def test_the_best_keys_are_in_no_block(alpha: float, rows: int) -> None:
    """What is left over after the last whole block."""
    scores = torch.randn(rows, 1031, dtype=torch.float64)
    scores[:, -7:] += 9
    assert_bisected(scores, alpha)


@pytest.mark.parametrize("alpha", [1.01, 1.3, 1.5, 2.0])
@pytest.mark.parametrize("ratio", [0.5, 0.9, 0.99])
def test_scores_that_fall_by_a_ratio(alpha: float, ratio: float) -> None:
    """Each step passes few of them."""
    falling = -(ratio ** torch.arange(701, 0, -1, dtype=torch.float64)) / (alpha - 1)
    assert_bisected(falling.expand(17, -1), alpha)


@pytest.mark.parametrize("alpha", [1.3, 1.5, 2.0])
def test_rows_that_arrive_late(alpha: float) -> None:
    """Most rows have one key to read, a few all of them: these go on alone, in their own rows."""
    scores = 9.0 * torch.randn(211, 61, dtype=torch.float64)
    scores[::2, 0] += 99
    scores[::53] *= 1e-3
    assert_bisected(scores, alpha)


def test_each_row_has_an_alpha_of_its_own() -> None:
    scores = torch.randn(7, 31, 59, dtype=torch.float64)
    scores[0] *= 1e-3
    assert_bisected(scores, 1.01 + 0.99 * torch.rand(7, 1, 1, dtype=torch.float64))


@pytest.mark.parametrize("shape", [(211, 61), (41, 1031)], ids=str)
def test_near_softmax_the_weights_still_sum_to_1(shape: tuple[int, int]) -> None:
    """At α = 1.01 the weights are powers of 100: a last bit of the threshold is 100 of theirs."""
    sums = entmax_newton.entmax(torch.randn(shape), 1.01).sum(-1)
    torch.testing.assert_close(sums, torch.ones(shape[0]), rtol=0, atol=1e-6)


def test_the_last_step_is_not_left_out() -> None:
    """A key that the step before it leaves behind, within some roundings of the threshold."""
    scores = torch.tensor([0.0, -1 + 2e-5, -1 + 1e-6]).expand(entmax_newton.SMALL, 3)
    found = entmax_newton.entmax(scores, 2.0).double()
    torch.testing.assert_close(found, bisected(scores, 2.0), rtol=0, atol=2e-7)


@each_alpha
def test_steps_are_few(alpha: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of shapes that are not sorted, and of scores that are unkind."""
    taken, step = [], entmax_newton._newton_step
    monkeypatch.setattr(
        entmax_newton, "_newton_step", lambda *given: taken.append(1) or step(*given)
    )
    falling = -(0.97 ** torch.arange(9973, 0, -1)) / (alpha - 1)
    for scores in (torch.randn(211, 61), torch.randn(5, 4099), falling[None]):
        taken.clear()
        entmax_newton.entmax(scores, alpha)
        assert len(taken) <= 40, f"{len(taken)} steps for {tuple(scores.shape)}"


@each_alpha
@pytest.mark.parametrize(
    "way", [entmax_newton.entmax, entmax_traceable.entmax], ids=["newton", "traceable"]
)
@pytest.mark.parametrize("shape", [(19, 5), (211, 61), (41, 263)], ids=str)
def test_a_row_of_nothing_and_a_row_of_nan(alpha: float, way, shape: tuple[int, int]) -> None:
    scores = torch.randn(shape)
    expected = way(scores, alpha)
    scores[1] = -torch.inf
    scores[2, 3], scores[4, 2] = torch.nan, torch.inf
    found = way(scores, alpha)
    assert torch.equal(found[1], torch.zeros(shape[1]))
    assert found[[2, 4]].isnan().any(-1).all()
    others = [row for row in range(shape[0]) if row not in (1, 2, 4)]
    torch.testing.assert_close(found[others], expected[others])


@pytest.mark.parametrize("alpha", [1.3, 1.5, 2.0, 3.0])
def test_axes_in_any_order(alpha: float) -> None:
    scores = torch.randn(7, 11, 5, 3)
    for transposed in (
        scores.mT,
        scores.transpose(0, 1),
        scores[:, ::2],
        scores[:1].expand(2, 11, 5, 3),
    ):
        expected = entmax_newton.entmax(transposed.contiguous(), alpha)
        torch.testing.assert_close(entmax_newton.entmax(transposed, alpha), expected)
    assert entmax_newton.entmax(scores[:0], alpha).shape == (0, 11, 5, 3)


@forward_mode
@each_alpha
def test_derivatives_of_both_orders_in_both_modes(alpha: float) -> None:
    scores = torch.randn(3, 7, dtype=torch.float64)
    scores[0, 2:4] = -torch.inf
    scores[2] = -torch.inf
    hidden = scores == -torch.inf
    given = scores.masked_fill(hidden, 0).requires_grad_()
    read = lambda given: entmax(given.masked_fill(hidden, -torch.inf), alpha)
    assert gradcheck(read, given, check_forward_ad=True, check_batched_grad=True)
    assert gradgradcheck(read, given, check_fwd_over_rev=True)


@forward_mode
@pytest.mark.parametrize("alpha", [1.05, 1.5, 1.9])
def test_derivatives_by_alpha(alpha: float) -> None:
    scores = torch.randn(2, 3, 7, dtype=torch.float64, requires_grad=True)
    alphas = torch.tensor([[[alpha]], [[1.3]]], dtype=torch.float64, requires_grad=True)
    assert gradcheck(entmax, (scores, alphas), check_forward_ad=True)
    assert gradgradcheck(entmax, (scores, alphas), check_fwd_over_rev=True)
    assert gradcheck(lambda alphas: entmax(scores.detach(), alphas), alphas, check_forward_ad=True)


@forward_mode
@each_alpha
@pytest.mark.parametrize("spread", [0.1, 3.0])
def test_gradients_are_the_same_inside_and_outside_of_a_transform(
    alpha: float, spread: float
) -> None:
    scores = spread * torch.randn(11, 7, dtype=torch.float64)
    direction = torch.randn(11, 7, dtype=torch.float64)
    loss = lambda scores: (entmax(scores, alpha) * direction).sum()
    leaf = scores.clone().requires_grad_()
    loss(leaf).backward()
    torch.testing.assert_close(torch.func.grad(loss)(scores), leaf.grad)
    _, slope = torch.func.jvp(loss, (scores,), (direction,))
    torch.testing.assert_close(slope, (leaf.grad * direction).sum())
