"""Greedy search: always the best next token."""

from dataclasses import dataclass, field

from regard.attention.options import whole
from regard.seq2seq.decoding.limits import Longest, limits
from regard.seq2seq.decoding.top import first
from regard.seq2seq.decoding.walk import Chosen, LogProbs, walk
from regard.seq2seq.examples import Batch
from regard.seq2seq.seams import Hypothesis, Stepper


@dataclass(frozen=True)
class Greedy:
    """The best next token, until it is `END`. Sentences that have ended leave the batch.

    Args:
        longest: How many tokens an answer may have, `END` among them.
    """

    longest: Longest | int = field(default_factory=Longest)

    def __post_init__(self) -> None:
        if not isinstance(self.longest, Longest):
            whole("longest", self.longest, least=1)

    def __call__(self, model: Stepper, batch: Batch) -> list[list[Hypothesis]]:
        return walk(model, batch, 1, limits(self.longest, batch), _best)


def _best(log_probs: LogProbs, *_: object) -> Chosen:
    return first(log_probs)
