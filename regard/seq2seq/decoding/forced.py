"""Scoring a given target: a search that can only go one way."""

import math
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from regard.seq2seq.batch import EOS, Batch, Tokens
from regard.seq2seq.decoding.errors import DecodingError
from regard.seq2seq.decoding.penalty import Penalty, PowerPenalty
from regard.seq2seq.decoding.stepwise import Chosen, LogProbs, stepwise
from regard.seq2seq.protocols import Hypothesis, Stepper


@runtime_checkable
class Targeted(Protocol):
    """A batch with targets: `BEGIN`, the words, `END`."""

    target: Tokens | None


@dataclass(frozen=True)
class Forced:
    """Each sentence's own target as its one hypothesis: what it is worth, and what it reads.

    A target that the model calls impossible has a score of −∞ and no weights.

    Args:
        penalty: As in the search whose scores these are to be compared with.
    """

    penalty: Penalty = field(default_factory=PowerPenalty)

    def __call__(self, model: Stepper, batch: Batch) -> list[list[Hypothesis]]:
        target = batch.target if isinstance(batch, Targeted) else None
        if target is None:
            raise DecodingError(
                f"a {type(batch).__name__} without targets cannot be scored. "
                "Give pairs of a source and its target."
            )
        ids = target.ids

        def choose(_: LogProbs, live: list[int], step: int) -> Chosen:
            return ids[live, step + 1][:, None]

        lengths = [length - 1 for length in target.lengths.tolist()]
        found = stepwise(model, batch, 1, lengths, choose)
        rows = zip(ids.tolist(), lengths, found, strict=True)
        return [[self._scored(row[1 : 1 + length], ways)] for row, length, ways in rows]

    def _scored(self, tokens: list[int], ways: list[Hypothesis]) -> Hypothesis:
        ended = tokens[-1] == EOS
        words = tokens[:-1] if ended else tokens
        if not ways:
            return Hypothesis(words, -math.inf, -math.inf, None, ended)
        way = ways[0]
        score = way.log_prob / self.penalty(len(tokens))
        return Hypothesis(words, score, way.log_prob, way.weights, ended)
