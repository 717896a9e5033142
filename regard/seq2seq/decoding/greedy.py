"""Greedy search: always the most probable next token."""

from dataclasses import dataclass, field

from regard.seq2seq.batch import Batch
from regard.seq2seq.decoding.output_limit import (
    LengthLimit,
    OutputLimit,
    check_max_length,
    max_lengths,
)
from regard.seq2seq.decoding.shapes import LogProbs, TokenIds
from regard.seq2seq.decoding.stepwise import stepwise
from regard.seq2seq.decoding.top_k import argmax
from regard.seq2seq.protocols import Hypothesis, Stepper


@dataclass(frozen=True)
class Greedy:
    """The most probable next token, until it is EOS. Sentences that have ended leave the batch.

    Args:
        max_length: How many tokens an output may have, EOS included.
    """

    max_length: LengthLimit = field(default_factory=OutputLimit)

    def __post_init__(self) -> None:
        check_max_length(self.max_length)

    def __call__(self, model: Stepper, batch: Batch) -> list[list[Hypothesis]]:
        return stepwise(model, batch, 1, max_lengths(self.max_length, batch), _most_probable)


def _most_probable(log_probs: LogProbs, *_: object) -> TokenIds:
    return argmax(log_probs)
