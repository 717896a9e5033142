"""An ensemble: a stepper around steppers that averages their predictions."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.core.errors import OptionError
from regard.seq2seq.batch import Batch
from regard.seq2seq.decoding.errors import DecodingError
from regard.seq2seq.decoding.output_limit import HasSourceLengths
from regard.seq2seq.decoding.shapes import LogProbs
from regard.seq2seq.protocols import DecodeStep, Stepper, StepperState

Mean = Literal["probabilities", "log-probabilities"]


@dataclass(frozen=True)
class Ensemble:
    """Models with the same target vocabulary, averaged at each token.

    In the mean of probabilities one confident model suffices for a token; in that of
    log-probabilities (normalised again) one suffices against it. Weights are averaged where all
    models have as many source positions; else they are the first one's.
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
        if not isinstance(state, EnsembleState) or len(state.states) != len(self.models):
            raise DecodingError(
                f"an ensemble of {len(self.models)} models was given the state of another stepper. "
                "Give it what its own start and step returned."
            )
        pairs = zip(self.models, state.states, strict=True)
        steps = [model.step(tokens, inner) for model, inner in pairs]
        log_probs = _mean([step.log_probs for step in steps], self.mean)
        return DecodeStep(
            log_probs, EnsembleState(tuple(step.state for step in steps)), _weights(steps)
        )


@dataclass(frozen=True, slots=True)
class EnsembleState:
    """A state for each model."""

    states: tuple[StepperState, ...]

    @property
    def source_lengths(self) -> Int[Tensor, " sentence"] | None:
        """The first model's: all read the same source."""
        lengths = (
            state.source_lengths for state in self.states if isinstance(state, HasSourceLengths)
        )
        return next(lengths, None)

    def reorder(self, beams: Int[Tensor, "sentence beam"]) -> "EnsembleState":
        return EnsembleState(tuple(state.reorder(beams) for state in self.states))

    def keep(self, sentences: Int[Tensor, " kept"]) -> "EnsembleState":
        return EnsembleState(tuple(state.keep(sentences) for state in self.states))


def _mean(log_probs: list[LogProbs], mean: Mean) -> LogProbs:
    sizes = {each.shape[-1] for each in log_probs}
    if len(sizes) > 1:
        raise DecodingError(
            f"the models have target vocabularies of {sorted(sizes)} tokens. "
            "Models of one ensemble must share theirs: train them on the same vocabulary."
        )
    if len(log_probs) == 1:
        return log_probs[0]
    stacked = torch.stack(log_probs)
    if mean == "probabilities":
        return stacked.logsumexp(0) - math.log(len(log_probs))
    average = stacked.mean(0)
    total = average.logsumexp(-1, keepdim=True)
    return average - total.masked_fill(total == -math.inf, 0.0)


def _weights(steps: list[DecodeStep]) -> Float[Tensor, "sentence beam source"] | None:
    weights = [step.weights for step in steps if step.weights is not None]
    if not weights:
        return None
    if len(weights) == len(steps) and len({each.shape for each in weights}) == 1:
        return torch.stack(weights).mean(0)
    return weights[0]
