"""Log-softmax and cross-entropy in C: those of plain code, at every CPU level."""

import pytest
import torch
from torch.nn import functional

from regard.native import loader, parallel
from regard.native.eligibility import usable
from regard.seq2seq.nn import linear_cross_entropy as losses
from regard.seq2seq.nn.linear_cross_entropy import linear_cross_entropy, log_softmax

pytestmark = pytest.mark.skipif(not usable(), reason="the C extension was not built")
SIZES = [1, 7, 16, 1000, 1025, 2999]


@pytest.fixture(params=range(loader.level() + 1), autouse=True)
def _level(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "level", lambda: request.param)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0, 1000.0])
def test_log_probabilities_are_as_exact_as_torchs(size: int, scale: float) -> None:
    torch.manual_seed(1)
    scores, bias = torch.randn(5, size) * scale, torch.randn(size)
    truth = functional.log_softmax(scores.double() + bias.double(), -1)
    theirs = functional.log_softmax(scores + bias, -1)
    found = log_softmax(scores.clone(), bias)
    error, usual = (found - truth).abs().max(), (theirs - truth).abs().max()
    assert error <= 2 * usual + 1e-6


@pytest.mark.parametrize("threads", [1, 3, 9])
def test_any_number_of_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    scores = torch.randn(7, 100)
    alone = log_softmax(scores.clone())
    monkeypatch.setattr(parallel, "threads", lambda _: threads)
    assert torch.equal(log_softmax(scores.clone()), alone)


def test_nan_and_inf() -> None:
    scores = torch.zeros(3, 40)
    scores[0, 3], scores[1, 5], scores[2, 7] = torch.nan, torch.inf, -torch.inf
    found = log_softmax(scores)
    assert found[0].isnan().any()
    assert found[1].isnan().any()
    assert found[2, 7] == -torch.inf
    assert torch.allclose(found[2].exp().sum(), torch.ones(()))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_and_its_gradients_are_torchs(size: int, smoothing: float) -> None:
    torch.manual_seed(2)
    given = [torch.randn(shape).mul_(2).requires_grad_() for shape in ((9, 6), (size, 6), (size,))]
    features, weight, bias = given
    targets = torch.randint(0, size, (9,))
    total, chosen = linear_cross_entropy(features, weight, bias, targets, smoothing)
    wide = [each.detach().double().requires_grad_() for each in given]  # torch's own float is off
    scores = functional.linear(*wide)
    truth = functional.cross_entropy(scores, targets, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(total, truth, check_dtype=False, atol=1e-5, rtol=1.3e-6)
    own = scores.log_softmax(-1).gather(-1, targets[:, None])[:, 0]
    torch.testing.assert_close(chosen.double(), own.detach(), atol=1e-5, rtol=1e-5)
    for factor in (3.0, 1 / 9):  # the latter is the gradient of a mean, which forward expects
        ours = torch.autograd.grad(factor * total, given, retain_graph=True)
        theirs = torch.autograd.grad(factor * truth, wide, retain_graph=True)
        for own, true in zip(ours, theirs, strict=True):
            torch.testing.assert_close(own.double(), true, atol=2e-5, rtol=2e-5)


def test_backward_twice() -> None:
    weight = torch.randn(31, 6, requires_grad=True)
    total, _ = linear_cross_entropy(
        torch.randn(9, 6), weight, torch.zeros(31), torch.randint(0, 31, (9,))
    )
    (total / 9).backward(retain_graph=True)
    assert weight.grad is not None
    once = weight.grad.clone()
    (total / 9).backward()
    torch.testing.assert_close(weight.grad, 2 * once)


@pytest.mark.parametrize("rows", [0, 1, 9])
def test_the_loss_in_chunks_has_the_same_gradients(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(3)
    shapes = ((rows, 6), (31, 6), (31,))
    given = [torch.randn(shape).requires_grad_() for shape in shapes]
    targets = torch.randint(0, 31, (rows,))
    whole = torch.autograd.grad(linear_cross_entropy(*given, targets, 0.1)[0], given)  # type: ignore[call-arg]
    monkeypatch.setattr(losses, "CHUNK", 2 * 31)
    torch.empty(31, 6).fill_(torch.nan)  # what a gradient finds where it is put is not its own
    parts = torch.autograd.grad(linear_cross_entropy(*given, targets, 0.1)[0], given)  # type: ignore[call-arg]
    for ours, theirs in zip(parts, whole, strict=True):
        torch.testing.assert_close(ours, theirs)
        assert ours.isfinite().all()
