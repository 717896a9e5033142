"""Greedy search: always the best next token."""

from dataclasses import dataclass, field

from regard.attention.core.options import check_int
from regard.seq2seq.batch import Batch
from regard.seq2seq.decoding.bounds import MOST_TOKENS
from regard.seq2seq.decoding.output_limit import OutputLimit, limits
from regard.seq2seq.decoding.stepwise import Chosen, LogProbs, stepwise
from regard.seq2seq.decoding.top_k import argmax
from regard.seq2seq.protocols import Hypothesis, Stepper


@dataclass(frozen=True)
class Greedy:
    """The best next token, until it is `END`. Sentences that have ended leave the batch.

    Args:
        longest: How many tokens an answer may have, `END` among them.
    """

    longest: OutputLimit | int = field(default_factory=OutputLimit)

    def __post_init__(self) -> None:
        if not isinstance(self.longest, OutputLimit):
            check_int("longest", self.longest, 1, MOST_TOKENS)

    def __call__(self, model: Stepper, batch: Batch) -> list[list[Hypothesis]]:
        return stepwise(model, batch, 1, limits(self.longest, batch), _best)


def _best(log_probs: LogProbs, *_: object) -> Chosen:
    return argmax(log_probs)
