"""The sampled softmax over a batch's words, against the softmax over the full vocabulary."""

import torch

from regard.seq2seq.models.aligner.lexicon import Lexicon, VocabularySide, sampled_log_prob


def test_a_batch_of_all_words_gives_the_exact_softmax() -> None:
    scores = torch.randn(4, 6, dtype=torch.float64)
    rows, columns = torch.arange(4).repeat_interleave(6), torch.arange(6).repeat(4)
    found = sampled_log_prob(scores, torch.full((6,), 1 / 6), 10_000, rows, columns)
    torch.testing.assert_close(found.view(4, 6), scores.log_softmax(-1))


def test_normalisers_are_unbiased() -> None:
    """Over batches drawn by word frequency, the mean of 1 / p(word | given) is exact."""
    torch.manual_seed(0)
    share = torch.rand(40, dtype=torch.float64)
    share /= share.sum()
    scores = torch.randn(1, 40, dtype=torch.float64)
    word, drawn, draws = 3, 20, 4000
    found = []
    for _ in range(draws):
        batch = torch.multinomial(share, drawn, replacement=True).unique()
        batch = torch.cat([torch.tensor([word]), batch[batch != word]])
        log = sampled_log_prob(
            scores[:, batch], share[batch], drawn, torch.tensor([0]), torch.tensor([0])
        )
        found.append(float(-log.exp().reciprocal()))
    means = -torch.tensor(found)
    true = float((-scores.log_softmax(-1)[0, word]).exp())
    error = float(means.std()) / draws**0.5
    assert abs(float(means.mean()) - true) < 5 * error


def test_totals_are_sums_over_the_other_side() -> None:
    torch.manual_seed(0)
    sides = [VocabularySide(torch.arange(n), torch.randn(n, 3), 5) for n in (7, 9)]
    lexicon = Lexicon(*sides)
    scores = lexicon.scores(torch.arange(7), torch.arange(9)).detach()
    forward = (scores + sides[1].bias.detach())[:, 1:].logsumexp(-1)
    backward = (scores.mT + sides[0].bias.detach())[:, 1:].logsumexp(-1)
    torch.testing.assert_close(lexicon.totals(torch.arange(7), backward=False), forward)
    torch.testing.assert_close(lexicon.totals(torch.arange(9), backward=True), backward)


def test_own_words_are_not_counted_twice() -> None:
    """A rare word counts once: without competitors its probability is near 1."""
    scores = torch.tensor([[2.0, -30.0]])
    log = sampled_log_prob(
        scores, torch.tensor([1e-5, 0.5]), 10, torch.tensor([0]), torch.tensor([0])
    )
    assert float(log.exp()) > 0.99
