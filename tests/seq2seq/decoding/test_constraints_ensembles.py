"""Steppers around steppers (ensembles and constraints), and forced decoding."""

import math

import pytest
import torch

from regard.attention.core.errors import OptionError
from regard.seq2seq.batch import BOS, EOS, SourceTarget, Tokens
from regard.seq2seq.decoding import (
    AtLeast,
    Beam,
    Constrained,
    DecodingError,
    Ensemble,
    Exact,
    Forbidden,
    Forced,
    Grammar,
    Greedy,
    PowerPenalty,
    Sampling,
    StartsWith,
)
from regard.seq2seq.decoding.ensemble import Mean
from regard.seq2seq.protocols import Search, Stepper
from tests.seq2seq.decoding.toy import WORDS, Toy, batch_of

ITEMS = (7, 3, 11, 4)
SEARCHES = [Greedy(6), Beam(3, 2, max_length=6), Sampling(count=2, max_length=6)]

searches = pytest.mark.parametrize("search", SEARCHES, ids=["greedy", "beam", "sampling"])
means = pytest.mark.parametrize("mean", ["probabilities", "log-probabilities"])


@searches
@means
def test_an_ensemble_of_one_is_its_model(search: Search, mean: Mean) -> None:
    toy, batch = Toy(seed=6), batch_of(*ITEMS)
    alone = search(toy, batch)
    for model in (Ensemble((toy,), mean), Ensemble((toy, toy), mean)):
        found = search(model, batch)
        for one, other in zip(alone, found, strict=True):
            assert [hypothesis.tokens for hypothesis in one] == [
                hypothesis.tokens for hypothesis in other
            ]
            expected = pytest.approx([hypothesis.log_prob for hypothesis in one])
            assert [hypothesis.log_prob for hypothesis in other] == expected


@means
def test_an_ensemble_averages(mean: Mean) -> None:
    toys = (Toy(seed=1), Toy(seed=2))
    for item, (hypothesis,) in zip(
        ITEMS, Beam(4, max_length=5)(Ensemble(toys, mean), batch_of(*ITEMS)), strict=True
    ):
        tokens, expected = [*hypothesis.tokens, EOS] if hypothesis.ended else hypothesis.tokens, 0.0
        for place, token in enumerate(tokens):
            log_probs = torch.stack([toy.row(item, tuple(tokens[:place]))[0] for toy in toys])
            if mean == "probabilities":
                expected += math.log(float(log_probs.exp().mean(0)[token]))
            else:
                expected += float(log_probs.mean(0).log_softmax(-1)[token])
        assert hypothesis.log_prob == pytest.approx(expected)
        read = [toy.read(item, tokens) for toy in toys]
        torch.testing.assert_close(hypothesis.weights, (read[0] + read[1]) / 2)


def test_an_ensemble_refuses_what_does_not_fit(unchecked: None) -> None:
    with pytest.raises(OptionError, match="models is empty"):
        Ensemble(())
    with pytest.raises(OptionError, match="mean is 'median'"):
        Ensemble((Toy(),), "median")
    with pytest.raises(DecodingError, match=r"vocabularies of \[5, 7\] tokens"):
        Greedy(3)(Ensemble((Toy(words=5), Toy(words=7))), batch_of(*ITEMS))
    state = Toy().start(batch_of(2), 1)
    with pytest.raises(DecodingError, match="state of another stepper"):
        Ensemble((Toy(),)).step(torch.zeros(1, 1, dtype=torch.int64), state)
    with pytest.raises(DecodingError, match="a Prefixes of another stepper"):
        Constrained(Toy(), AtLeast(1)).step(torch.zeros(1, 1, dtype=torch.int64), state)


@searches
def test_constraints_hold(search: Search) -> None:
    batch = batch_of(*ITEMS)
    prefixes = {7: [4, 4], 11: [3, 0, 1]}
    model: Stepper = Constrained(Toy(ending=1.0), StartsWith(prefixes))
    model = Constrained(model, AtLeast(4))
    for item, hypotheses in zip(ITEMS, search(model, batch), strict=True):
        assert hypotheses
        for hypothesis in hypotheses:
            wanted = prefixes.get(item, [])
            assert hypothesis.tokens[: len(wanted)] == wanted
            assert len(hypothesis.tokens) >= 4
            Toy(ending=1.0).owns(item, hypothesis)  # scores and weights are the model's own


@searches
def test_an_empty_constraint_changes_nothing(search: Search) -> None:
    batch, toy = batch_of(*ITEMS), Toy(seed=3)
    for grammar in (AtLeast(0), StartsWith({}), Forbidden(frozenset())):
        free, bound = search(toy, batch), search(Constrained(toy, grammar), batch)
        assert [[hypothesis.tokens for hypothesis in hypotheses] for hypotheses in free] == [
            [hypothesis.tokens for hypothesis in hypotheses] for hypotheses in bound
        ]


def test_a_wide_beam_finds_the_best_that_is_allowed() -> None:
    toy = Toy(seed=9)
    model = Constrained(toy, Forbidden(frozenset([0, 3])))
    search = Beam(61, penalty=PowerPenalty(0.0), max_length=3)
    for item, (hypothesis,) in zip(ITEMS, search(model, batch_of(*ITEMS)), strict=True):
        allowed = [(), *((one,) for one in (1, 4)), *((a, b) for a in (1, 4) for b in (1, 4))]
        best = max(allowed, key=lambda tokens: toy.log_prob(item, (*tokens, EOS)))
        assert tuple(hypothesis.tokens) == best


def targets() -> dict[int, list[int]]:
    return {7: [4, 3, 4], 3: [], 11: [0], 4: [1, 1, 3, 0]}


def pairs() -> SourceTarget:
    """The toy's batch with targets of different lengths."""
    rows = [[BOS, *targets()[item], EOS] for item in ITEMS]
    lengths = torch.tensor([len(row) for row in rows])
    ids = torch.zeros(len(rows), int(lengths.max()), dtype=torch.int64)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = torch.tensor(row)
    source = batch_of(*ITEMS).source
    return SourceTarget(ITEMS, source, Tokens(ids, lengths))


def test_a_given_target_has_its_own_score_and_weights() -> None:
    toy = Toy(seed=7)
    exact = Beam(2, max_length=9)(Constrained(toy, Exact(targets())), batch_of(*ITEMS))
    forced = Forced()(toy, pairs())
    for item, (hypothesis,), (other,) in zip(ITEMS, forced, exact, strict=True):
        assert hypothesis.tokens == targets()[item]
        assert hypothesis.ended
        assert hypothesis.score == hypothesis.log_prob / (len(hypothesis.tokens) + 1)
        toy.owns(item, hypothesis)
        assert other.tokens == hypothesis.tokens
        assert other.score == pytest.approx(hypothesis.score)


def test_an_impossible_target_scores_minus_infinity() -> None:
    found = Forced()(Constrained(Toy(), Forbidden(frozenset([3]))), pairs())
    assert [hypotheses[0].log_prob == -math.inf for hypotheses in found] == [
        True,
        False,
        False,
        True,
    ]
    assert [hypotheses[0].tokens for hypotheses in found] == list(targets().values())


def test_a_target_must_be_given() -> None:
    with pytest.raises(DecodingError, match="SourceTarget without targets"):
        Forced()(Toy(), batch_of(*ITEMS))


def test_they_are_what_they_claim_to_be() -> None:
    assert isinstance(Ensemble((Toy(),)), Stepper)
    assert isinstance(Constrained(Toy(), AtLeast(1)), Stepper)
    assert isinstance(Forced(), Search)
    for grammar in (AtLeast(1), StartsWith({}), Exact({}), Forbidden(frozenset([WORDS]))):
        assert isinstance(grammar, Grammar)
