"""Top-k and argmax are those of a sort of the vocabulary."""

import pytest
import torch

from regard.native import loader
from regard.native.eligibility import usable
from regard.seq2seq.decoding.top_k import argmax, top_k


@pytest.mark.parametrize("words", [3, 63, 64, 65, 1009, 2048])
@pytest.mark.parametrize("beams", [1, 5])
@pytest.mark.parametrize("count", [2, 10])
def test_it_is_the_sort_of_everything(words: int, beams: int, count: int) -> None:
    torch.manual_seed(words)
    log_probs = (3 * torch.randn(7, beams, words)).log_softmax(-1)
    log_probs[:, :, 1::3] = -torch.inf
    scores = -5 * torch.rand(7, beams, dtype=torch.float64)
    scores[2, 1:] = -torch.inf
    values, numbers = top_k(log_probs, scores, count)
    whole = (log_probs + scores[..., None]).flatten(1)
    expected = whole.sort(descending=True).values[:, :count]
    torch.testing.assert_close(values, expected, rtol=0, atol=0)
    torch.testing.assert_close(whole.gather(1, numbers), expected, rtol=0, atol=0)
    assert all(len(set(row)) == len(row) for row in numbers.tolist())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("words", [3, 64, 65, 127, 128, 1009, 2501])
def test_argmax_is_torchs(words: int, dtype: torch.dtype) -> None:
    torch.manual_seed(words)
    log_probs = torch.randn(31, 5, words, dtype=dtype).log_softmax(-1)
    log_probs[3] = -torch.inf
    log_probs[5, :, -1] = 1.0
    assert torch.equal(argmax(log_probs), log_probs.argmax(-1))
    log_probs[7, 2, words // 2] = torch.nan
    assert argmax(log_probs)[7, 2] == words // 2


@pytest.mark.skipif(not usable(), reason="the C extension was not built")
@pytest.mark.parametrize("level", range(loader.level() + 1))
def test_the_first_of_equals_in_c(level: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "level", lambda: level)
    torch.manual_seed(6)
    rounded = torch.randint(0, 4, (17, 1, 3001)).float()
    rounded[1, 0] = -torch.inf
    place = (rounded == rounded.amax(-1, keepdim=True)).int().argmax(-1)
    assert torch.equal(argmax(rounded), place)
