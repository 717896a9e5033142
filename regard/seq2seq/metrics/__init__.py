"""Metrics of hypotheses, each with a signature that makes it reproducible."""

from regard.seq2seq.metrics.bootstrap import Bootstrap
from regard.seq2seq.metrics.perplexity import perplexity
from regard.seq2seq.metrics.score import MetricScore
from regard.seq2seq.metrics.tagging import accuracy, entity_f1, is_bio
from regard.seq2seq.metrics.text_metrics import bleu, chrf, exact_match

__all__ = [
    "Bootstrap",
    "MetricScore",
    "accuracy",
    "bleu",
    "chrf",
    "entity_f1",
    "exact_match",
    "is_bio",
    "perplexity",
]
