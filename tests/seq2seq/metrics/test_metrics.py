"""Scores against sacrebleu called directly, and against what can be counted by hand."""

import json
import math

import numpy
import pytest
import sacrebleu
import torch

from regard.attention.core.errors import OptionError
from regard.seq2seq.errors import DataError
from regard.seq2seq.metrics import Bootstrap, MetricScore, bleu, chrf, exact_match, perplexity
from regard.seq2seq.protocols import LossTerm

REFERENCES = [
    "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche.",
    "Mehrere Männer mit Schutzhelmen bedienen ein Antriebsradsystem.",
    "Ein kleines Mädchen klettert in ein Spielhaus aus Holz.",
    "Ein Mann in einem blauen Hemd steht auf einer Leiter und putzt ein Fenster.",
    "Zwei Männer stehen am Herd und bereiten Essen zu.",
]
HYPOTHESES = [
    "Zwei junge Männer sind im Freien in der Nähe von Büschen.",
    "Männer mit Helmen bedienen ein System.",
    "Ein kleines Mädchen klettert in ein Spielhaus aus Holz.",
    "Ein Mann in einem blauen Hemd putzt ein Fenster.",
    "zwei Männer kochen",
]


def test_bleu_is_sacrebleus() -> None:
    metric = sacrebleu.BLEU()
    expected = metric.corpus_score(HYPOTHESES, [REFERENCES])
    found = bleu(HYPOTHESES, REFERENCES)
    assert found.value == pytest.approx(expected.score, abs=1e-9)
    assert found.signature == str(metric.get_signature())
    assert "tok:13a" in found.signature
    assert found.count == 5


def test_chrf_is_sacrebleus() -> None:
    metric = sacrebleu.CHRF()
    expected = metric.corpus_score(HYPOTHESES, [REFERENCES])
    found = chrf(HYPOTHESES, REFERENCES)
    assert found.value == pytest.approx(expected.score, abs=1e-9)
    assert found.signature == str(metric.get_signature())


def test_bleu_by_hand() -> None:
    found = bleu(["a b c d e"], ["a b c d f"])
    # 4 of 5, 3 of 4, 2 of 3, 1 of 2; as long as its reference.
    assert found.value == pytest.approx(100 * (4 / 5 * 3 / 4 * 2 / 3 * 1 / 2) ** 0.25)
    assert bleu(["a b c d"], ["a b c d"]).value == pytest.approx(100)


@pytest.mark.parametrize("metric", ["BLEU", "CHRF"])
def test_the_interval_is_sacrebleus(metric: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SACREBLEU_SEED", "77")
    expected = getattr(sacrebleu, metric)().corpus_score(HYPOTHESES, [REFERENCES], n_bootstrap=200)
    ours = {"BLEU": bleu, "CHRF": chrf}[metric]
    found = ours(HYPOTHESES, REFERENCES, Bootstrap(200, seed=77))
    assert found.interval is not None
    low, high = found.interval
    assert (high - low) / 2 == pytest.approx(expected._ci, rel=1e-4)
    assert low <= found.value <= high
    assert found.signature.endswith("|bs:200|seed:77")


def test_an_interval_is_a_function_of_its_seed() -> None:
    one = bleu(HYPOTHESES, REFERENCES, Bootstrap(100, seed=1))
    assert one == bleu(HYPOTHESES, REFERENCES, Bootstrap(100, seed=1))
    assert one.interval != bleu(HYPOTHESES, REFERENCES, Bootstrap(100, seed=2)).interval
    with pytest.raises(OptionError, match="draws is 7"):
        Bootstrap(draws=7)


def test_exact_matches_are_counted_to_the_character() -> None:
    given = ["1979-05-03", "1979-05-04", "1979-05-03 ", "1979-05-03"]
    found = exact_match(given, ["1979-05-03"] * 4, Bootstrap())
    assert found.value == 50.0
    assert found.interval is not None
    assert found.interval[0] < 50 < found.interval[1]
    assert exact_match(["é"], ["e\N{COMBINING ACUTE ACCENT}"]).value == 0.0


def test_the_interval_of_a_share_is_that_of_the_binomial() -> None:
    given = ["a"] * 300 + ["b"] * 100
    found = exact_match(given, ["a"] * 400, Bootstrap(2000, seed=5))
    spread = 1.96 * math.sqrt(0.75 * 0.25 / 400) * 100
    assert found.interval is not None
    assert numpy.allclose(found.interval, (75 - spread, 75 + spread), atol=0.5)


def test_perplexity_by_hand() -> None:
    terms = [LossTerm(torch.tensor(3 * math.log(8.0)), 3), LossTerm(torch.tensor(math.log(2.0)), 7)]
    found = perplexity(terms)
    assert found.value == pytest.approx(2.0)  # (8³ · 2)^(1/10)
    assert found.count == 10
    lost = perplexity([LossTerm(torch.tensor(1e6), 1)])
    assert lost.value == math.inf
    assert lost.as_json()["value"] is None
    with pytest.raises(DataError, match="no token"):
        perplexity([])


def test_a_score_is_json() -> None:
    found = bleu(HYPOTHESES, REFERENCES, Bootstrap(100))
    loaded = json.loads(json.dumps(found.as_json(), allow_nan=False))
    assert loaded["interval"] == list(found.interval or ())
    assert (loaded["name"], loaded["count"]) == ("BLEU", 5)
    assert str(MetricScore("exact", 99.5, "nrefs:1", 2, (98.0, 100.0))) == (
        "exact 99.50 [98.00, 100.00] (nrefs:1)"
    )


def test_lines_must_pair_up() -> None:
    with pytest.raises(DataError, match="2 hypotheses cannot be scored against 1 references"):
        chrf(["a", "b"], ["a"])
    with pytest.raises(DataError, match="nothing to score"):
        exact_match([], [])
