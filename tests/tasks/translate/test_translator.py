"""The abilities of a trained translator."""

import math
from pathlib import Path

import pytest

from regard.seq2seq.data import Pair
from regard.seq2seq.decoding import UnkReplacement
from regard.seq2seq.errors import RunError
from regard.tasks.run import load, load_ensemble, train
from regard.tasks.translate.validation import token_terms
from tests.tasks.translate.small import configured, say_unknown, write_pairs


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two seeds on the same pairs, and one run on others."""
    folder = tmp_path_factory.mktemp("runs")
    pairs = write_pairs(folder / "pairs.tsv")
    for seed in (1, 2):
        train(folder / f"seed-{seed}", configured(pairs, training__steps=6, training__seed=seed))
    (folder / "other.tsv").write_text("eins zwei\t1 2\ndrei vier\t3 4\nfünf\t5\n", "utf-8")
    train(folder / "other", configured(folder / "other.tsv", training__steps=1))
    return folder


def test_scores_are_what_the_loss_counts(runs: Path) -> None:
    translator = load(runs / "seed-1")
    given = [("one two three", "1 2 3"), ("four", "4"), ("zero zero one", "0 2 1 1")]
    scores = [answer.score for answer in translator.score(given)]
    for (source, target), score in zip(given, scores, strict=True):
        (term,) = token_terms(translator.model, translator.codec, [Pair(source, target, 1)])
        assert score == pytest.approx(-float(term.total.detach()), rel=1e-5)


def test_those_who_vote_share_their_probability(runs: Path) -> None:
    given = [("one", "1")]
    alone = [next(load(runs / f"seed-{seed}").score(given)).score for seed in (1, 2)]
    both = load_ensemble([runs / "seed-1", runs / "seed-2"])
    (found,) = both.score(given)
    # The mean of two probabilities is never below the root of their product, token by token.
    assert found.score > sum(alone) / 2


def test_other_vocabularies_make_no_ensemble(runs: Path) -> None:
    with pytest.raises(RunError, match="different source vocabularies"):
        load_ensemble([runs / "seed-1", runs / "other"])


def test_an_unknown_word_is_the_one_that_was_read(runs: Path) -> None:
    translator = load(runs / "seed-1")
    say_unknown(translator)
    said = translator.predict(["Ravel"], beam=1)[0]
    translator.unknown = UnkReplacement({}, " ")
    named = translator.predict(["Ravel"], beam=1)[0]
    assert "Ravel" not in said.text
    assert set(named.text.split()) == {"Ravel"}


def test_sampling_ranks_by_likelihood(runs: Path) -> None:
    translator = load(runs / "seed-1")
    search = translator.sampling(temperature=2.0, count=4, seed=3)
    (answers,) = translator.stream(["one two"], search)
    scores = [answer.score for answer in answers]
    assert len(scores) == 4
    assert scores == sorted(scores, reverse=True)
    assert all(math.isfinite(score) for score in scores)
