"""One library for each kind of processor, and the best that is there."""

import platform

import pytest
import torch

from regard import Attention, kernels, scores
from regard.native import loader
from regard.native.eligibility import usable

needs_c = pytest.mark.skipif(not usable(), reason="there is no C compiler here")


@needs_c
@pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors have one library")
@pytest.mark.parametrize("level", range(len(loader.LEVELS)))
def test_each_is_built(level: int) -> None:
    """Those that this processor cannot run, too: to load a library is not to run it."""
    assert loader._library_at(level) is not None


@needs_c
def test_it_is_the_best_that_the_processor_can_run() -> None:
    lowest = loader._library_at(0)
    assert lowest is not None
    assert loader.level() == lowest.regard_level()


@needs_c
def test_without_the_best_the_next_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    best, inner = loader.level(), loader._library_at
    if best == 0:
        pytest.skip("this processor has but one")
    queries, keys = torch.randn(2, 3, 8), torch.randn(2, 5, 8)
    attention = Attention(scores.Additive(8, 8, 16))
    truth = attention(queries, keys, keys).context
    monkeypatch.setattr(loader, "_library_at", lambda each: None if each == best else inner(each))
    monkeypatch.setattr(loader, "level", loader.level.__wrapped__)
    assert loader.level() == best - 1
    assert kernels.available()["additive"] == f"C, {loader.LEVELS[best - 1]}"
    torch.testing.assert_close(attention(queries, keys, keys).context, truth, atol=1e-5, rtol=1e-5)
