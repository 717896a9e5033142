"""Metrics of hypotheses against references: BLEU, chrF and exact match, in percent."""

from collections.abc import Sequence

import numpy
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from regard.seq2seq.errors import DataError
from regard.seq2seq.metrics.bootstrap import Bootstrap
from regard.seq2seq.metrics.score import MetricScore


def bleu(
    hypotheses: Sequence[str], references: Sequence[str], bootstrap: Bootstrap | None = None
) -> MetricScore:
    """Sacrebleu's BLEU: 13a tokens, case kept (Post 2018)."""
    return _sacre("BLEU", BLEU(force=True), hypotheses, references, bootstrap)


def chrf(
    hypotheses: Sequence[str], references: Sequence[str], bootstrap: Bootstrap | None = None
) -> MetricScore:
    """Sacrebleu's chrF2: character n-grams up to 6, no word n-grams (Popović 2015)."""
    return _sacre("chrF2", CHRF(), hypotheses, references, bootstrap)


def exact_match(
    hypotheses: Sequence[str], references: Sequence[str], bootstrap: Bootstrap | None = None
) -> MetricScore:
    """Percentage of hypotheses equal to their reference.

    >>> exact_match(["1979-05-03", "1979-05-04"], ["1979-05-03", "1979-05-03"]).value
    50.0
    """
    _check_pairs(hypotheses, references)
    hits = [
        [float(ours == reference)] for ours, reference in zip(hypotheses, references, strict=True)
    ]
    statistics = numpy.array(hits)
    interval = None
    if bootstrap is not None:
        interval = bootstrap.interval(statistics, lambda summed: 100 * float(summed[0]) / len(hits))
    signature = _with_bootstrap("nrefs:1|case:mixed|space:kept", bootstrap)
    return MetricScore("exact", 100 * float(statistics.mean()), signature, len(hits), interval)


def _sacre(
    name: str,
    metric: Metric,
    hypotheses: Sequence[str],
    references: Sequence[str],
    bootstrap: Bootstrap | None,
) -> MetricScore:
    _check_pairs(hypotheses, references)
    # The statistics that corpus_score sums, one row a sentence, so that they can be resampled.
    # Its own bootstrap takes its seed from the environment alone.
    rows = metric._extract_corpus_statistics(list(hypotheses), [list(references)])
    statistics = numpy.array(rows, dtype=numpy.float64)

    def score(summed: numpy.ndarray) -> float:
        return float(metric._compute_score_from_stats(summed.tolist()).score)

    interval = None if bootstrap is None else bootstrap.interval(statistics, score)
    signature = _with_bootstrap(str(metric.get_signature()), bootstrap)
    return MetricScore(name, score(statistics.sum(0)), signature, len(rows), interval)


def _with_bootstrap(signature: str, bootstrap: Bootstrap | None) -> str:
    if bootstrap is None:
        return signature
    return f"{signature}|bs:{bootstrap.draws}|seed:{bootstrap.seed}"


def _check_pairs(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    if len(hypotheses) != len(references):
        raise DataError(
            f"{len(hypotheses)} hypotheses cannot be scored against {len(references)} references. "
            "Give one of each for every line."
        )
    if not hypotheses:
        raise DataError(
            "there is nothing to score: no hypothesis was given. Give one line or more."
        )
