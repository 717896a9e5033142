"""Beam search against an exhaustive search, a naive beam search, and itself."""

import math
from itertools import pairwise

import pytest
import torch

from regard.attention.core.errors import OptionError
from regard.seq2seq.batch import EOS
from regard.seq2seq.decoding import (
    AtLeast,
    Beam,
    Constrained,
    DecodingError,
    Forbidden,
    Greedy,
    OutputLimit,
    Penalty,
    PowerPenalty,
    StartsWith,
    WuPenalty,
)
from regard.seq2seq.decoding.beam import _BeamSearch
from regard.seq2seq.protocols import DecodeStep, Hypothesis, Search, StepperState
from tests.seq2seq.decoding import oracles
from tests.seq2seq.decoding.toy import WORDS, Toy, batch_of, source_length

ITEMS = (7, 3, 11)
LONGEST = 4
ALL = 331
"""Wider than all candidates of the last step: 4³ beams of 5 words."""

penalties = pytest.mark.parametrize(
    "penalty", [PowerPenalty(0.0), PowerPenalty(1.0), WuPenalty(0.6), WuPenalty(2.0)], ids=str
)


def outputs(hypotheses: list[Hypothesis]) -> list[tuple[tuple[int, ...], bool]]:
    return [(tuple(hypothesis.tokens), hypothesis.ended) for hypothesis in hypotheses]


@penalties
def test_a_wide_beam_is_an_exhaustive_search(penalty: Penalty) -> None:
    toy = Toy(seed=2)
    found = Beam(ALL, n_best=3, penalty=penalty, max_length=LONGEST)(toy, batch_of(*ITEMS))
    for item, hypotheses in zip(ITEMS, found, strict=True):
        best = oracles.exhaustive(toy, item, penalty, LONGEST)[:3]
        assert outputs(hypotheses) == [(tokens, True) for _, tokens, _ in best]
        assert [hypothesis.score for hypothesis in hypotheses] == pytest.approx(
            [score for score, *_ in best]
        )
        for hypothesis in hypotheses:
            toy.owns(item, hypothesis)


@penalties
@pytest.mark.parametrize("width", [2, 3, 5])
def test_a_narrow_beam_is_the_naive_beam_search(penalty: Penalty, width: int) -> None:
    for seed in range(4):
        toy = Toy(seed, ending=-1.0)
        found = Beam(width, n_best=width, penalty=penalty, max_length=6)(toy, batch_of(*ITEMS))
        for item, hypotheses in zip(ITEMS, found, strict=True):
            plain = oracles.beam(toy, item, width, penalty, 6)[:width]
            assert outputs(hypotheses) == [(tokens, ended) for _, tokens, ended in plain]
            assert [hypothesis.score for hypothesis in hypotheses] == pytest.approx(
                [score for score, *_ in plain]
            )
            for hypothesis in hypotheses:
                toy.owns(item, hypothesis)


@penalties
def test_early_stopping_changes_no_output(penalty: Penalty) -> None:
    saved = 0
    for seed in range(5):
        for width, best in ((2, 1), (3, 3), (5, 2)):
            early, late = Toy(seed, ending=1.0), Toy(seed, ending=1.0)
            options = {"beam_size": width, "n_best": best, "penalty": penalty, "max_length": 7}
            quick = Beam(**options)(early, batch_of(*ITEMS))
            full = Beam(**options, early_stopping=False)(late, batch_of(*ITEMS))
            assert [outputs(hypotheses) for hypotheses in quick] == [
                outputs(hypotheses) for hypotheses in full
            ]
            assert early.rows <= late.rows
            saved += late.rows - early.rows
    assert saved > 0


@penalties
def test_patience_stops_when_enough_have_ended(penalty: Penalty) -> None:
    """With much of it nothing changes; with little, outputs are among the finished ones."""
    saved = 0
    for seed in range(5):
        brief, long = Toy(seed, ending=1.0), Toy(seed, ending=1.0)
        options = {"beam_size": 3, "penalty": penalty, "max_length": 7}
        found = Beam(**options, n_best=2, patience=1.0)(brief, batch_of(*ITEMS))
        full = Beam(**options, n_best=3, early_stopping=False)(long, batch_of(*ITEMS))
        saved += long.rows - brief.rows
        assert brief.rows <= long.rows
        for item, hypotheses, all_hypotheses in zip(ITEMS, found, full, strict=True):
            plain = oracles.beam(Toy(seed, ending=1.0), item, 3, penalty, 7)
            assert set(outputs(hypotheses)) <= {(tokens, ended) for _, tokens, ended in plain}
            assert hypotheses[0].score <= all_hypotheses[0].score
        patient = Beam(**options, n_best=3, patience=100.0)(long, batch_of(*ITEMS))
        assert [outputs(hypotheses) for hypotheses in patient] == [
            outputs(hypotheses) for hypotheses in full
        ]
    assert saved > 0
    with pytest.raises(OptionError, match="patience is 0"):
        Beam(3, patience=0)


@pytest.mark.parametrize("ending", [-3.0, 0.0, 2.0])
def test_greedy_is_the_naive_greedy_search_and_a_beam_of_one(ending: float) -> None:
    for seed in range(4):
        toy = Toy(seed, ending=ending)
        batch = batch_of(*ITEMS)
        found = Greedy(max_length=6)(toy, batch)
        assert [outputs(hypotheses) for hypotheses in found] == [
            [oracles.greedy(toy, item, 6)] for item in ITEMS
        ]
        narrow = Beam(beam_size=1, penalty=WuPenalty(0.7), max_length=6)(toy, batch)
        assert [outputs(hypotheses) for hypotheses in narrow] == [
            outputs(hypotheses) for hypotheses in found
        ]
        # Beam search proper, which continues after an EOS, gives the same.
        proper = _BeamSearch(
            Beam(beam_size=1, penalty=PowerPenalty(0.0), max_length=6), toy, batch
        ).run()
        assert [outputs(hypotheses) for hypotheses in proper] == [
            outputs(hypotheses) for hypotheses in found
        ]
        for item, (hypothesis,), (ranked,) in zip(ITEMS, found, narrow, strict=True):
            toy.owns(item, hypothesis)
            assert hypothesis.score == hypothesis.log_prob
            assert ranked.score == hypothesis.log_prob / WuPenalty(0.7)(
                len(hypothesis.tokens) + hypothesis.ended
            )


@pytest.mark.parametrize("search", [Greedy(5), Beam(3, 2, max_length=5)], ids=str)
def test_a_batch_of_one_decodes_as_a_batch_of_many(search: Search) -> None:
    toy, items = Toy(seed=5), (2, 9, 4, 13, 6)
    together = search(toy, batch_of(*items))
    assert {
        hypothesis.weights.shape[1]
        for hypotheses in together
        for hypothesis in hypotheses
        if hypothesis.weights is not None
    } == {source_length(item) for item in items}
    for item, hypotheses in zip(items, together, strict=True):
        (alone,) = search(toy, batch_of(item))
        assert outputs(alone) == outputs(hypotheses)
        for one, other in zip(alone, hypotheses, strict=True):
            assert one.score == other.score
            torch.testing.assert_close(one.weights, other.weights, rtol=0, atol=0)


@pytest.mark.parametrize("search", [Greedy, Beam], ids=["greedy", "beam"])
def test_an_output_without_eos_is_cut_off_at_its_own_limit(search: type) -> None:
    toy = Toy(words=13, ending=-60.0)  # with few words even such an end is among the best five
    found = search(max_length=OutputLimit(factor=1.5, offset=1))(toy, batch_of(*ITEMS))
    for item, (hypothesis,) in zip(ITEMS, found, strict=True):
        assert not hypothesis.ended
        assert len(hypothesis.tokens) == int(1.5 * source_length(item)) + 1
        toy.owns(item, hypothesis)


def test_ended_sentences_leave_the_batch() -> None:
    toy = Toy(seed=1, ending=0.5)
    Beam(3, max_length=9)(toy, batch_of(*range(20)))
    assert "keep" in toy.calls
    steps = toy.calls.count("step")
    assert toy.rows < 20 * 3 * steps
    assert toy.calls.count("reorder") == steps - 1


@pytest.mark.parametrize("search", [Greedy(5), Beam(3, max_length=5)], ids=str)
def test_what_is_impossible_has_no_hypothesis(search: Search) -> None:
    nowhere = Constrained(Toy(), StartsWith({3: [4, WORDS + 1]}))
    found = search(nowhere, batch_of(*ITEMS))
    assert [len(hypotheses) for hypotheses in found] == [1, 0, 1]


def test_ended_hypotheses_come_before_those_cut_off() -> None:
    late = Constrained(Toy(seed=4, ending=-4.0), AtLeast(2))
    for hypotheses in Beam(4, n_best=4, max_length=3)(late, batch_of(*range(9))):
        assert [hypothesis.ended for hypothesis in hypotheses] == sorted(
            (hypothesis.ended for hypothesis in hypotheses), reverse=True
        )
        assert all(
            len(hypothesis.tokens) == 2 if hypothesis.ended else len(hypothesis.tokens) == 3
            for hypothesis in hypotheses
        )


def test_a_greater_penalty_prefers_longer_outputs() -> None:
    alphas = (0.0, 0.5, 1.0, 2.0)
    for family in (PowerPenalty, WuPenalty):
        lengths = []
        for alpha in alphas:
            search = Beam(ALL, penalty=family(alpha), max_length=LONGEST)
            found = search(Toy(seed=8), batch_of(*ITEMS))
            lengths.append([len(hypotheses[0].tokens) for hypotheses in found])
        for shorter, longer in pairwise(lengths):
            assert all(one <= other for one, other in zip(shorter, longer, strict=True))
        assert lengths[0] != lengths[-1]
        rising = [family(0.7)(length) for length in range(1, 9)]
        assert rising == sorted(set(rising))


def test_tokens_past_the_vocabulary_are_output() -> None:
    only = Constrained(Toy(words=9), Forbidden(frozenset(range(7)) - {EOS}))
    for hypotheses in Beam(3, max_length=4)(only, batch_of(*ITEMS)):
        assert set(hypotheses[0].tokens) <= {7, 8}


@pytest.mark.parametrize("search", [Greedy(3), Beam(2, max_length=3)], ids=str)
def test_nan_is_an_error_that_names_the_token(search: Search) -> None:
    class Broken(Toy):
        def step(self, tokens: torch.Tensor, state: StepperState) -> DecodeStep:
            made = super().step(tokens, state)
            if self.calls.count("step") == 2:
                made.log_probs[-1] = math.nan
            return made

    with pytest.raises(DecodingError, match="token 2 are NaN"):
        search(Broken(ending=-60.0), batch_of(*ITEMS))


def test_options_outside_their_range_are_refused() -> None:
    with pytest.raises(OptionError, match="n_best is 3 but beam_size is 2"):
        Beam(beam_size=2, n_best=3)
    with pytest.raises(OptionError, match="beam_size is 0"):
        Beam(beam_size=0)
    with pytest.raises(OptionError, match="max_length is 0"):
        Greedy(max_length=0)
    with pytest.raises(OptionError, match="alpha is -1"):
        WuPenalty(-1)
    with pytest.raises(OptionError, match=r"factor is -0\.5"):
        OutputLimit(factor=-0.5)


def test_searches_are_searches() -> None:
    assert isinstance(Beam(), Search)
    assert isinstance(Greedy(), Search)
    assert Beam(3) == Beam(3)
