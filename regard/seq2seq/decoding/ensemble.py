"""Several models as one: a stepper around steppers."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.core.errors import OptionError
from regard.seq2seq.batch import Batch
from regard.seq2seq.decoding.errors import DecodingError
from regard.seq2seq.protocols import DecodeStep, Stepper, StepperState

LogProbs = Float[Tensor, "sentence beam vocabulary"]
Mean = Literal["probabilities", "log-probabilities"]


@dataclass(frozen=True)
class Ensemble:
    """Models with the same target vocabulary that vote on each token.

    The mean of probabilities lets one model that is sure carry a token; that of log-probabilities
    (made to sum to 1 again) lets one model that is sure against it stop it. Weights are averaged
    where all models read the same number of positions; else they are the first one's.
    """

    models: tuple[Stepper, ...]
    mean: Mean = "probabilities"

    def __post_init__(self) -> None:
        if not self.models:
            raise OptionError("models is empty. An ensemble needs one model or more.")
        if self.mean not in ("probabilities", "log-probabilities"):
            raise OptionError(
                f'mean is {self.mean!r}. Choose "probabilities" or "log-probabilities".'
            )

    def start(self, batch: Batch, width: int) -> "EnsembleState":
        return EnsembleState(tuple(model.start(batch, width) for model in self.models))

    def step(self, tokens: Int[Tensor, "sentence beam"], state: StepperState) -> DecodeStep:
        if not isinstance(state, EnsembleState) or len(state.parts) != len(self.models):
            raise DecodingError(
                f"an ensemble of {len(self.models)} models was given the state of another stepper. "
                "Give it what its own start and step returned."
            )
        pairs = zip(self.models, state.parts, strict=True)
        steps = [model.step(tokens, part) for model, part in pairs]
        log_probs = _mean([step.log_probs for step in steps], self.mean)
        return DecodeStep(
            log_probs, EnsembleState(tuple(step.state for step in steps)), _weights(steps)
        )


@dataclass(frozen=True, slots=True)
class EnsembleState:
    """A state for each model."""

    parts: tuple[StepperState, ...]

    def reorder(self, beams: Int[Tensor, "sentence beam"]) -> "EnsembleState":
        return EnsembleState(tuple(part.reorder(beams) for part in self.parts))

    def keep(self, sentences: Int[Tensor, " kept"]) -> "EnsembleState":
        return EnsembleState(tuple(part.keep(sentences) for part in self.parts))


def _mean(votes: list[LogProbs], mean: Mean) -> LogProbs:
    sizes = {vote.shape[-1] for vote in votes}
    if len(sizes) > 1:
        raise DecodingError(
            f"the models have target vocabularies of {sorted(sizes)} words. "
            "Models of one ensemble must share theirs: train them on the same vocabulary."
        )
    if len(votes) == 1:
        return votes[0]
    stacked = torch.stack(votes)
    if mean == "probabilities":
        return stacked.logsumexp(0) - math.log(len(votes))
    average = stacked.mean(0)
    total = average.logsumexp(-1, keepdim=True)
    return average - total.masked_fill(total == -math.inf, 0.0)


def _weights(steps: list[DecodeStep]) -> Float[Tensor, "sentence beam source"] | None:
    read = [step.weights for step in steps if step.weights is not None]
    if not read:
        return None
    if len(read) == len(steps) and len({weights.shape for weights in read}) == 1:
        return torch.stack(read).mean(0)
    return read[0]
