"""Perplexity: among how many tokens a model wavers."""

import math
from collections.abc import Iterable

from regard.seq2seq.errors import DataError
from regard.seq2seq.metrics.score import MetricScore
from regard.seq2seq.protocols import LossTerm


def perplexity(terms: Iterable[LossTerm]) -> MetricScore:
    """The exponential of the mean loss of a token, over the "tokens" terms of all batches.

    The terms must be log-probabilities as they are: label smoothing would make it another figure.

    >>> import torch
    >>> loss = [LossTerm(torch.tensor(4.0), 3), LossTerm(torch.tensor(2.0), 1)]
    >>> perplexity(loss).value == math.exp(6 / 4)
    True
    """
    total, count = 0.0, 0
    for term in terms:
        total += float(term.total)
        count += term.count
    if not count:
        raise DataError("there is no token to be surprised at. Give terms with a count above 0.")
    mean = total / count
    value = math.exp(mean) if mean < 700 else math.inf
    return MetricScore("perplexity", value, "per:token|base:e", count)
