"""Scores of what was decoded, each with the signature to get it again."""

from regard.seq2seq.metrics.bootstrap import Bootstrap
from regard.seq2seq.metrics.result import Score
from regard.seq2seq.metrics.surprise import perplexity
from regard.seq2seq.metrics.texts import bleu, chrf, exact_match

__all__ = ["Bootstrap", "Score", "bleu", "chrf", "exact_match", "perplexity"]
