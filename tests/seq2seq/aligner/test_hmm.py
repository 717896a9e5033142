"""The forward–backward algorithm against a sum over all alignments, enumerated."""

import math
from itertools import pairwise, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.seq2seq.models.aligner import Posterior, Transitions, posterior
from regard.seq2seq.models.aligner.aligner import EmissionLogProbs, WordIds, _expected_loss


def all_alignments(
    words: Tensor, null: Tensor, transitions: Transitions
) -> list[tuple[tuple[tuple[int, bool], ...], Tensor]]:
    """Each alignment of one sentence with its probability: a position and NULL or not, per word.

    From the definition: NULL leaves the position where it was, uniform before the first word.
    """
    targets, sources = words.shape
    empty, present = transitions.empty.exp(), transitions.present.exp()
    found = []
    for path in product([(s, q) for s in range(sources) for q in (False, True)], repeat=targets):
        probability = words.new_ones(())
        for step, (place, is_null) in enumerate(path):
            if is_null:
                stays = 1 / sources if step == 0 else float(place == path[step - 1][0])
                probability = probability * empty * null[step] * stays
                continue
            logs = transitions.first[0] if step == 0 else transitions.jumps[0, path[step - 1][0]]
            probability = probability * present * logs[place].exp() * words[step, place]
        found.append((path, probability))
    return found


def sentence(targets: int, sources: int, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    words = torch.rand(targets, sources, generator=generator, dtype=torch.float64) + 0.01
    null = torch.rand(targets, generator=generator, dtype=torch.float64) + 0.01
    widths = torch.randn(5, generator=generator, dtype=torch.float64)
    return words, null, widths, torch.randn((), generator=generator, dtype=torch.float64)


def read(
    words: Tensor, null: Tensor, widths: Tensor, empty: Tensor
) -> tuple[Posterior, Transitions]:
    transitions = Transitions.of(widths, empty, torch.ones(1, words.shape[1], dtype=torch.bool))
    return posterior(words[None], null[None], transitions, torch.tensor([len(words)])), transitions


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 10**6))
def test_it_is_the_sum_over_all_alignments(targets: int, sources: int, seed: int) -> None:
    given_ = sentence(targets, sources, seed)
    found, transitions = read(*given_)
    paths = all_alignments(given_[0], given_[1], transitions)
    total = sum(float(p) for _, p in paths)
    assert float(found.log_prob) == pytest.approx(math.log(total), abs=1e-9)
    for target, source in product(range(targets), range(sources)):
        share = sum(float(p) for path, p in paths if path[target] == (source, False)) / total
        assert float(found.words[0, target, source]) == pytest.approx(share, abs=1e-9)
    for target in range(targets):
        share = sum(float(p) for path, p in paths if path[target][1]) / total
        assert float(found.null[0, target]) == pytest.approx(share, abs=1e-9)
    jumped = torch.zeros(sources, sources, dtype=torch.float64)
    for path, p in paths:
        for (before, _), (after, is_null) in pairwise(path):
            if not is_null:
                jumped[before, after] += float(p) / total
    torch.testing.assert_close(found.jumps[0], jumped)


def test_padding_changes_nothing() -> None:
    words, null, widths, empty = sentence(4, 3, 7)
    alone, _ = read(words, null, widths, empty)
    padded = torch.zeros(2, 6, 5, dtype=torch.float64)
    is_null = torch.zeros(2, 6, dtype=torch.float64)
    padded[0, :4, :3], is_null[0, :4] = words, null
    padded[1], is_null[1] = torch.rand(6, 5), torch.rand(6)
    real = torch.tensor([[True] * 3 + [False] * 2, [True] * 5])
    found = posterior(padded, is_null, Transitions.of(widths, empty, real), torch.tensor([4, 6]))
    torch.testing.assert_close(found.words[0, :4, :3], alone.words[0])
    torch.testing.assert_close(found.null[0, :4], alone.null[0])
    torch.testing.assert_close(found.log_prob[0], alone.log_prob[0])
    torch.testing.assert_close(found.jumps[0, :3, :3], alone.jumps[0])
    assert not found.words[0, 4:].any()
    assert not found.words[0, :, 3:].any()


def test_long_sentences_do_not_underflow() -> None:
    words = torch.full((1, 250, 250), 1e-6)
    transitions = Transitions.of(
        torch.zeros(17), torch.tensor(-2.0), torch.ones(1, 250, dtype=torch.bool)
    )
    found = posterior(words, torch.full((1, 250), 1e-6), transitions, torch.tensor([250]))
    sums = found.words.sum(-1) + found.null
    torch.testing.assert_close(sums, torch.ones_like(sums), rtol=1e-3, atol=1e-3)
    assert found.log_prob.isfinite().all()


def test_the_gradient_by_posteriors_is_that_of_the_log_likelihood() -> None:
    """The surrogate, given its own posterior, has the gradient of the true log-probability."""
    words, null, widths, empty = sentence(3, 3, 3)
    leaves = [t.requires_grad_() for t in (words.log(), null.log(), widths, empty)]
    leaves = [t.detach().requires_grad_() for t in leaves]
    transitions = Transitions.of(leaves[2], leaves[3], torch.ones(1, 3, dtype=torch.bool))
    total = torch.stack(
        [p for _, p in all_alignments(leaves[0].exp(), leaves[1].exp(), transitions)]
    ).sum()
    true = torch.autograd.grad(-total.log(), leaves)
    transitions = Transitions.of(leaves[2], leaves[3], torch.ones(1, 3, dtype=torch.bool))
    found = posterior(words[None], null[None], transitions, torch.tensor([3]))
    log_probs = EmissionLogProbs(leaves[0][None], leaves[1][None])
    target_ids = WordIds(torch.ones(1, 3, dtype=torch.long), torch.tensor([3]))
    loss = _expected_loss(log_probs, found.words, found, transitions, target_ids)
    assert loss.item() == pytest.approx(-math.log(total.item()))
    for one, other in zip(true, torch.autograd.grad(loss, leaves), strict=True):
        torch.testing.assert_close(one, other)
