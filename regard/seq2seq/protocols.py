"""The seams of the toolkit: what a loop, a search and a task know of a model, and no more.

    nn.Module    model(batch) is the loss         what the training loop sees
    Stepper      takes one token at a time        what a search sees
    HasWeights   has weights for a given target   what a picture sees

A model has those of them that it can; nobody asks what kind of model it is. That the loss is
`forward` lets DistributedDataParallel and FSDP wrap it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.masks import Lengths
from regard.seq2seq.batch import Batch, Span


@dataclass(slots=True)
class Encoded:
    """What an encoder hands on."""

    values: Float[Tensor, "batch source size"]
    lengths: Int[Tensor, " batch"]
    summary: Float[Tensor, "batch size"]
    """All of it as one vector: where a recurrent decoder begins."""

    places: list[list[Span]] = field(default_factory=list)
    """Where each position lies for people: characters, milliseconds, pixels."""

    @property
    def mask(self) -> Lengths:
        """Padding is hidden."""
        return Lengths(self.lengths)


@dataclass(slots=True)
class LossTerm:
    """One part of a loss. What is minimised is Σ weight · total / count over the terms."""

    total: Float[Tensor, ""]
    count: int
    weight: float = 1.0
    unit: str = ""
    """Which of the batch's `counts()` it is divided by; the one of its own name if empty."""


Loss = Mapping[str, LossTerm]
"""By name: "tokens", "coverage", "reinforce", "baseline", "links"."""


@runtime_checkable
class StepperState(Protocol):
    """What a stepper carries from token to token, for `(sentence, beam)`."""

    def reorder(self, beams: Int[Tensor, "sentence beam"]) -> "StepperState":
        """Other beams of the same sentences. The source is never copied."""

    def keep(self, sentences: Int[Tensor, " kept"]) -> "StepperState":
        """Some of the sentences only: the others have ended."""


@dataclass(slots=True)
class DecodeStep:
    """What one token led to."""

    log_probs: Float[Tensor, "sentence beam vocabulary"]
    """Copied words widen it past the vocabulary."""

    state: StepperState
    weights: Float[Tensor, "sentence beam source"] | None
    """What was read for the token that comes next; None if the model reads nothing."""


@runtime_checkable
class Stepper(Protocol):
    """What a search sees of a model."""

    def start(self, batch: Batch, width: int) -> StepperState:
        """Before the first token, for so many beams."""

    def step(self, tokens: Int[Tensor, "sentence beam"], state: StepperState) -> DecodeStep:
        """Give it the last token of each beam, `BEGIN` at first."""


@runtime_checkable
class HasWeights(Protocol):
    """Whatever tells its weights for a given target."""

    def read(self, batch: Batch) -> Mapping[str, Float[Tensor, "batch target source"]]:
        """By name: "decoder" or "decoder.3/head.1".

        Row t is what token t of the target, `END` included and `BEGIN` not, was predicted from.
        """


@dataclass(slots=True)
class Hypothesis:
    """One way that a search found."""

    tokens: list[int]
    """Without `BEGIN`, and without `END`."""

    score: float
    """By what hypotheses are ranked: the log-probability, with the search's length penalty."""

    log_prob: float
    weights: Float[Tensor, "target source"] | None = None
    """What this very hypothesis read, a row for each token; one more for `END` if it has ended."""

    ended: bool = True
    """False if it was cut off at the longest length."""


@runtime_checkable
class Search(Protocol):
    """Greedy, beam or sampling: a value with its options."""

    def __call__(self, model: Stepper, batch: Batch) -> list[list[Hypothesis]]:
        """For each sentence of the batch its hypotheses, the best first."""


@dataclass(slots=True)
class Prediction:
    """A hypothesis as people see it."""

    text: str
    score: float
    source: list[str] = field(default_factory=list)
    """The source's tokens, as many as the weights have columns."""

    target: list[str] = field(default_factory=list)
    weights: Float[Tensor, "target source"] | None = None
    tokens: list[int] = field(default_factory=list)
    """The target's as the model said them: ids."""
