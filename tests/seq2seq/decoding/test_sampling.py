"""Samples follow the model's distribution, and do not depend on the batch."""

import pytest
import torch
from torch import Tensor

from regard.attention.core.errors import OptionError
from regard.seq2seq.batch import EOS
from regard.seq2seq.decoding import Constrained, Forbidden, Greedy, Sampling, StartsWith
from regard.seq2seq.decoding.sampling import hashed_uniform, inverse_cdf
from regard.seq2seq.protocols import Search
from tests.seq2seq.decoding.toy import WORDS, Toy, batch_of

DRAWS, ITEM = 2003, 5
LEVEL = 1e-4
"""The level of each test; seeds are fixed as well."""


def assert_drawn_from(counts: Tensor, probs: Tensor) -> None:
    """Pearson's chi-square test."""
    assert not counts[probs == 0].any()
    possible = probs > 0
    if possible.sum() == 1:
        return
    expected = counts.sum() * probs[possible]
    distance = ((counts[possible] - expected).square() / expected).sum()
    freedom = torch.tensor((int(possible.sum()) - 1) / 2, dtype=torch.float64)
    assert torch.special.gammaincc(freedom, distance / 2) > LEVEL


def first_tokens(search: Sampling) -> Tensor:
    """How often each token was sampled first."""
    (hypotheses,) = search(Toy(), batch_of(ITEM))
    assert len(hypotheses) == DRAWS
    first = [hypothesis.tokens[0] if hypothesis.tokens else EOS for hypothesis in hypotheses]
    return torch.tensor(first).bincount(minlength=WORDS).double()


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_tokens_follow_the_model_s_distribution(temperature: float) -> None:
    counts = first_tokens(Sampling(temperature, count=DRAWS, max_length=1))
    log_probs, _ = Toy().row(ITEM, ())
    assert_drawn_from(counts, (log_probs / temperature).softmax(-1))


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_top_p_samples_from_the_nucleus(kept: int) -> None:
    probs = Toy().row(ITEM, ())[0].exp()
    order = probs.argsort(descending=True)
    top_p = float(probs[order[:kept]].sum()) - 1e-6
    counts = first_tokens(Sampling(top_p=top_p, count=DRAWS, max_length=1))
    left = torch.zeros_like(probs)
    left[order[:kept]] = probs[order[:kept]]
    assert_drawn_from(counts, left / left.sum())


def test_second_tokens_depend_on_the_first_alone() -> None:
    (hypotheses,) = Sampling(count=DRAWS, max_length=2)(Toy(ending=-60.0), batch_of(ITEM))
    toy = Toy(ending=-60.0)
    first = max(range(WORDS), key=lambda word: toy.row(ITEM, ())[0][word])
    second = [hypothesis.tokens[1] for hypothesis in hypotheses if hypothesis.tokens[0] == first]
    counts = torch.tensor(second).bincount(minlength=WORDS).double()
    assert_drawn_from(counts, toy.row(ITEM, (first,))[0].exp().where(counts > 0, 0.0))


def test_hashed_numbers_are_uniform() -> None:
    drawn = torch.tensor(
        [hashed_uniform(3, item, 1, step) for item in range(50) for step in range(40)]
    )
    assert_drawn_from(drawn.histc(10, 0, 1).double(), torch.full((10,), 0.1).double())
    assert len(set(drawn.tolist())) > 1990
    assert hashed_uniform(3, 1, 0, 2) != hashed_uniform(4, 1, 0, 2)


def test_samples_do_not_depend_on_the_batch() -> None:
    search, toy = Sampling(count=3, seed=4, max_length=6), Toy()
    items = (7, 3, 11, 4)
    for item, hypotheses in zip(items, search(toy, batch_of(*items)), strict=True):
        (alone,) = search(toy, batch_of(item))
        assert [hypothesis.tokens for hypothesis in alone] == [
            hypothesis.tokens for hypothesis in hypotheses
        ]
        assert [hypothesis.score for hypothesis in hypotheses] == sorted(
            (hypothesis.score for hypothesis in hypotheses), reverse=True
        )
        for hypothesis in hypotheses:
            toy.owns(item, hypothesis)


def test_another_seed_gives_other_samples() -> None:
    batch = batch_of(*range(9))
    one, other = Sampling(seed=1, max_length=6), Sampling(seed=2, max_length=6)
    assert one(Toy(), batch) != other(Toy(), batch)


def test_a_temperature_near_zero_is_greedy() -> None:
    batch = batch_of(*range(9))
    cold = Sampling(temperature=1e-6, max_length=6)(Toy(), batch)
    greedy = Greedy(max_length=6)(Toy(), batch)
    assert [hypotheses[0].tokens for hypotheses in cold] == [
        hypotheses[0].tokens for hypotheses in greedy
    ]


def test_forbidden_tokens_are_never_sampled() -> None:
    toy = Constrained(Toy(), Forbidden(frozenset([0, 1, 4])))
    found = Sampling(count=5, max_length=6)(toy, batch_of(*range(9)))
    assert {
        token for hypotheses in found for hypothesis in hypotheses for token in hypothesis.tokens
    } == {3}
    nowhere = Constrained(Toy(), StartsWith({2: [WORDS]}))
    assert [len(hypotheses) for hypotheses in Sampling(max_length=3)(nowhere, batch_of(1, 2))] == [
        1,
        0,
    ]


def test_the_greatest_uniform_number_has_a_token() -> None:
    probs = torch.tensor([[[0.25, 0.5, 1 / 3, 0.0]]], dtype=torch.float64)
    greatest = torch.tensor([[1 - 2.0**-52]], dtype=torch.float64)
    assert inverse_cdf(probs, greatest).item() == 2
    assert inverse_cdf(probs, torch.zeros_like(greatest)).item() == 0


def test_options_outside_their_range_are_refused() -> None:
    assert isinstance(Sampling(), Search)
    with pytest.raises(OptionError, match=r"top_p is 1\.5"):
        Sampling(top_p=1.5)
    with pytest.raises(OptionError, match="temperature is 0"):
        Sampling(temperature=0)


def test_top_p_of_a_flat_vocabulary_is_that_of_a_sort() -> None:
    torch.manual_seed(2)
    log_probs = torch.stack([torch.randn(997), 4 * torch.randn(997)])[None].log_softmax(-1)
    for top_p in (0.1, 0.9):
        kept = Sampling(top_p=top_p).probs(log_probs) > 0
        for row, log_prob in zip(kept[0], log_probs[0], strict=True):
            order = log_prob.argsort(descending=True)
            count = int((log_prob.double().exp()[order].cumsum(0) < top_p).sum()) + 1
            assert set(row.nonzero()[:, 0].tolist()) == set(order[:count].tolist())
