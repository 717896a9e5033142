"""Perplexity: exp of the mean token cross-entropy."""

import math
from collections.abc import Iterable

from regard.seq2seq.errors import DataError
from regard.seq2seq.metrics.score import MetricScore
from regard.seq2seq.protocols import LossTerm


def perplexity(terms: Iterable[LossTerm]) -> MetricScore:
    """Exp of the mean token cross-entropy, over the "tokens" terms of all batches.

    The terms must be without label smoothing.

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
        raise DataError("perplexity of no tokens is undefined. Give terms with a count above 0.")
    mean = total / count
    value = math.exp(mean) if mean < 700 else math.inf
    return MetricScore("perplexity", value, "per:token|base:e", count, higher_is_better=False)
