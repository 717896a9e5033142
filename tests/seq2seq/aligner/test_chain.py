"""The chain against all alignments written out one by one."""

import math
from itertools import pairwise, product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from regard.seq2seq.models.aligner import Posterior, Transitions, posterior
from regard.seq2seq.models.aligner.aligner import Cells, WordIds, _learned


def every(
    words: Tensor, nothing: Tensor, chain: Transitions
) -> list[tuple[tuple[tuple[int, bool], ...], Tensor]]:
    """Each alignment of one sentence with its probability: where the reader is, and is it silent?

    Written from the definition: a silent word leaves the reader where it was; before the first
    word that is anywhere alike.
    """
    targets, sources = words.shape
    empty, present = chain.empty.exp(), chain.present.exp()
    found = []
    for path in product([(s, q) for s in range(sources) for q in (False, True)], repeat=targets):
        probability = words.new_ones(())
        for step, (place, silent) in enumerate(path):
            if silent:
                stays = 1 / sources if step == 0 else float(place == path[step - 1][0])
                probability = probability * empty * nothing[step] * stays
                continue
            logs = chain.first[0] if step == 0 else chain.jumps[0, path[step - 1][0]]
            probability = probability * present * logs[place].exp() * words[step, place]
        found.append((path, probability))
    return found


def sentence(targets: int, sources: int, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    words = torch.rand(targets, sources, generator=generator, dtype=torch.float64) + 0.01
    nothing = torch.rand(targets, generator=generator, dtype=torch.float64) + 0.01
    widths = torch.randn(5, generator=generator, dtype=torch.float64)
    return words, nothing, widths, torch.randn((), generator=generator, dtype=torch.float64)


def read(
    words: Tensor, nothing: Tensor, widths: Tensor, empty: Tensor
) -> tuple[Posterior, Transitions]:
    chain = Transitions.of(widths, empty, torch.ones(1, words.shape[1], dtype=torch.bool))
    return posterior(words[None], nothing[None], chain, torch.tensor([len(words)])), chain


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 3), st.integers(1, 3), st.integers(0, 10**6))
def test_it_is_the_sum_over_all_alignments(targets: int, sources: int, seed: int) -> None:
    given_ = sentence(targets, sources, seed)
    found, chain = read(*given_)
    paths = every(given_[0], given_[1], chain)
    total = sum(float(p) for _, p in paths)
    assert float(found.log_prob) == pytest.approx(math.log(total), abs=1e-9)
    for target, source in product(range(targets), range(sources)):
        share = sum(float(p) for path, p in paths if path[target] == (source, False)) / total
        assert float(found.words[0, target, source]) == pytest.approx(share, abs=1e-9)
    for target in range(targets):
        share = sum(float(p) for path, p in paths if path[target][1]) / total
        assert float(found.nothing[0, target]) == pytest.approx(share, abs=1e-9)
    jumped = torch.zeros(sources, sources, dtype=torch.float64)
    for path, p in paths:
        for (before, _), (after, silent) in pairwise(path):
            if not silent:
                jumped[before, after] += float(p) / total
    torch.testing.assert_close(found.jumps[0], jumped)


def test_padding_changes_nothing() -> None:
    words, nothing, widths, empty = sentence(4, 3, 7)
    alone, _ = read(words, nothing, widths, empty)
    padded = torch.zeros(2, 6, 5, dtype=torch.float64)
    silent = torch.zeros(2, 6, dtype=torch.float64)
    padded[0, :4, :3], silent[0, :4] = words, nothing
    padded[1], silent[1] = torch.rand(6, 5), torch.rand(6)
    real = torch.tensor([[True] * 3 + [False] * 2, [True] * 5])
    found = posterior(padded, silent, Transitions.of(widths, empty, real), torch.tensor([4, 6]))
    torch.testing.assert_close(found.words[0, :4, :3], alone.words[0])
    torch.testing.assert_close(found.nothing[0, :4], alone.nothing[0])
    torch.testing.assert_close(found.log_prob[0], alone.log_prob[0])
    torch.testing.assert_close(found.jumps[0, :3, :3], alone.jumps[0])
    assert not found.words[0, 4:].any()
    assert not found.words[0, :, 3:].any()


def test_long_sentences_do_not_vanish() -> None:
    words = torch.full((1, 250, 250), 1e-6)
    chain = Transitions.of(
        torch.zeros(17), torch.tensor(-2.0), torch.ones(1, 250, dtype=torch.bool)
    )
    found = posterior(words, torch.full((1, 250), 1e-6), chain, torch.tensor([250]))
    sums = found.words.sum(-1) + found.nothing
    torch.testing.assert_close(sums, torch.ones_like(sums), rtol=1e-3, atol=1e-3)
    assert found.log_prob.isfinite().all()


def test_the_slope_by_posteriors_is_that_of_the_sum() -> None:
    """The surrogate, given its own posterior, has the gradient of the true log-probability."""
    words, nothing, widths, empty = sentence(3, 3, 3)
    leaves = [t.requires_grad_() for t in (words.log(), nothing.log(), widths, empty)]
    leaves = [t.detach().requires_grad_() for t in leaves]
    chain = Transitions.of(leaves[2], leaves[3], torch.ones(1, 3, dtype=torch.bool))
    total = torch.stack([p for _, p in every(leaves[0].exp(), leaves[1].exp(), chain)]).sum()
    true = torch.autograd.grad(-total.log(), leaves)
    chain = Transitions.of(leaves[2], leaves[3], torch.ones(1, 3, dtype=torch.bool))
    found = posterior(words[None], nothing[None], chain, torch.tensor([3]))
    cells = Cells(leaves[0][None], leaves[1][None])
    told = WordIds(torch.ones(1, 3, dtype=torch.long), torch.tensor([3]))
    cost = _learned(cells, found.words, found, chain, told)
    assert cost.item() == pytest.approx(-math.log(total.item()))
    for one, other in zip(true, torch.autograd.grad(cost, leaves), strict=True):
        torch.testing.assert_close(one, other)
