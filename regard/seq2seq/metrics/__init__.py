"""Metrics of hypotheses, each with a signature that makes it reproducible."""

from regard.seq2seq.metrics.bootstrap import Bootstrap
from regard.seq2seq.metrics.perplexity import perplexity
from regard.seq2seq.metrics.score import MetricScore
from regard.seq2seq.metrics.text_metrics import bleu, chrf, exact_match

__all__ = ["Bootstrap", "MetricScore", "bleu", "chrf", "exact_match", "perplexity"]
