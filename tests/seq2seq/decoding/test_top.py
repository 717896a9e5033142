"""The best continuations are those of a sort of the whole."""

import pytest
import torch

from regard.seq2seq.decoding.top import first, top


@pytest.mark.parametrize("words", [3, 63, 64, 65, 1009, 2048])
@pytest.mark.parametrize("beams", [1, 5])
@pytest.mark.parametrize("count", [2, 10])
def test_it_is_the_sort_of_the_whole(words: int, beams: int, count: int) -> None:
    torch.manual_seed(words)
    log_probs = (3 * torch.randn(7, beams, words)).log_softmax(-1)
    log_probs[:, :, 1::3] = -torch.inf
    scores = -5 * torch.rand(7, beams, dtype=torch.float64)
    scores[2, 1:] = -torch.inf
    values, numbers = top(log_probs, scores, count)
    whole = (log_probs + scores[..., None]).flatten(1)
    expected = whole.sort(descending=True).values[:, :count]
    torch.testing.assert_close(values, expected, rtol=0, atol=0)
    torch.testing.assert_close(whole.gather(1, numbers), expected, rtol=0, atol=0)
    assert all(len(set(row)) == len(row) for row in numbers.tolist())


@pytest.mark.parametrize("words", [3, 64, 65, 127, 128, 1009])
def test_the_first_is_argmax(words: int) -> None:
    torch.manual_seed(words)
    log_probs = torch.randn(31, 5, words).log_softmax(-1)
    log_probs[3] = -torch.inf
    log_probs[5, :, -1] = 1.0
    assert torch.equal(first(log_probs), log_probs.argmax(-1))
    log_probs[7, 2, words // 2] = torch.nan
    assert first(log_probs)[7, 2] == words // 2
