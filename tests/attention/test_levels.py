"""One library for each kind of processor, and the best that is there."""

import platform

import pytest
import torch

from regard import Attention, kernels, scores
from regard.attention.kernels import native

needs_c = pytest.mark.skipif(native.library() is None, reason="there is no C compiler here")


@needs_c
@pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors have one library")
@pytest.mark.parametrize("level", range(len(native.LEVELS)))
def test_each_is_built(level: int) -> None:
    """Those that this processor cannot run, too: to load a library is not to run it."""
    assert native._compiled(level) is not None


@needs_c
def test_it_is_the_best_that_the_processor_can_run() -> None:
    lowest = native._compiled(0)
    assert lowest is not None
    assert native.level() == lowest.regard_level()


@needs_c
def test_without_the_best_the_next_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    best, inner = native.level(), native._compiled
    if best == 0:
        pytest.skip("this processor has but one")
    queries, keys = torch.randn(2, 3, 8), torch.randn(2, 5, 8)
    attention = Attention(scores.Additive(8, 8, 16))
    truth = attention(queries, keys, keys).context
    monkeypatch.setattr(native, "_compiled", lambda level: None if level == best else inner(level))
    monkeypatch.setattr(native, "level", native.level.__wrapped__)
    assert native.level() == best - 1
    assert kernels.available()["additive"] == f"C, {native.LEVELS[best - 1]}"
    torch.testing.assert_close(attention(queries, keys, keys).context, truth, atol=1e-5, rtol=1e-5)
