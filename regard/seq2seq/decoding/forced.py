"""Forced decoding: the score and the weights of a given target."""

import math
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from regard.seq2seq.batch import EOS, Batch, Tokens
from regard.seq2seq.decoding.errors import DecodingError
from regard.seq2seq.decoding.penalty import Penalty, PowerPenalty
from regard.seq2seq.decoding.shapes import LogProbs, TokenIds
from regard.seq2seq.decoding.stepwise import stepwise
from regard.seq2seq.protocols import Hypothesis, Stepper


@runtime_checkable
class HasTarget(Protocol):
    """A batch with targets: BOS, the tokens, EOS."""

    target: Tokens | None


@dataclass(frozen=True)
class Forced:
    """Each sentence's target as its one hypothesis, with its score and its weights.

    A target that is impossible under the model has a score of −∞ and no weights.

    Args:
        penalty: As in the search whose scores these are to be compared with.
    """

    penalty: Penalty = field(default_factory=PowerPenalty)

    def __call__(self, model: Stepper, batch: Batch) -> list[list[Hypothesis]]:
        target = batch.target if isinstance(batch, HasTarget) else None
        if target is None:
            raise DecodingError(
                f"a {type(batch).__name__} without targets cannot be scored. "
                "Give pairs of a source and its target."
            )
        ids = target.ids

        def choose(_: LogProbs, active: list[int], step: int) -> TokenIds:
            return ids[active, step + 1][:, None]

        lengths = [length - 1 for length in target.lengths.tolist()]
        hypotheses = stepwise(model, batch, 1, lengths, choose)
        rows = zip(ids.tolist(), lengths, hypotheses, strict=True)
        return [[self._scored(row[1 : 1 + length], each)] for row, length, each in rows]

    def _scored(self, target: list[int], hypotheses: list[Hypothesis]) -> Hypothesis:
        ended = target[-1] == EOS
        tokens = target[:-1] if ended else target
        if not hypotheses:
            return Hypothesis(tokens, -math.inf, -math.inf, None, ended)
        (hypothesis,) = hypotheses
        score = hypothesis.log_prob / self.penalty(len(target))
        return Hypothesis(tokens, score, hypothesis.log_prob, hypothesis.weights, ended)
