"""The protocols of the toolkit: all that the training loop, a search and a task know of a model.

    nn.Module    model(batch) is the loss               the training loop
    Stepper      one token at a time                    a search
    HasWeights   attention weights of a given target    alignments and plots

A model implements those that it can; no caller asks for its class. That the loss is `forward` lets
DistributedDataParallel and FSDP wrap it.
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
    """The output of an encoder."""

    values: Float[Tensor, "batch source size"]
    lengths: Int[Tensor, " batch"]
    summary: Float[Tensor, "batch size"]
    """The source as one vector: initialises a recurrent decoder."""

    places: list[list[Span]] = field(default_factory=list)
    """The span of each position in the input: characters, milliseconds, pixels."""

    @property
    def mask(self) -> Lengths:
        """The padding mask."""
        return Lengths(self.lengths)


@dataclass(slots=True)
class LossTerm:
    """One term of a loss, which is Σ weight · total / count over the terms."""

    total: Float[Tensor, ""]
    count: int
    weight: float = 1.0
    unit: str = ""
    """The key of the batch's `counts()` that it is divided by; its own name if empty."""


Loss = Mapping[str, LossTerm]
"""By name: "tokens", "coverage", "reinforce", "baseline", "links"."""


@runtime_checkable
class StepperState(Protocol):
    """The decoding state of a stepper, for `(sentence, beam)`."""

    def reorder(self, beams: Int[Tensor, "sentence beam"]) -> "StepperState":
        """Select beams within each sentence. The source is never copied."""

    def keep(self, sentences: Int[Tensor, " kept"]) -> "StepperState":
        """Select sentences: the others have ended."""


@dataclass(slots=True)
class DecodeStep:
    """The output of one decoding step."""

    log_probs: Float[Tensor, "sentence beam vocabulary"]
    """Copied words extend it past the vocabulary."""

    state: StepperState
    weights: Float[Tensor, "sentence beam source"] | None
    """Attention weights for the next token; None if the model has no attention."""


@runtime_checkable
class Stepper(Protocol):
    """A model as a search sees it."""

    def start(self, batch: Batch, width: int) -> StepperState:
        """The state before the first token, for `width` beams."""

    def step(self, tokens: Int[Tensor, "sentence beam"], state: StepperState) -> DecodeStep:
        """One step from the last token of each beam, BOS at first."""


@runtime_checkable
class HasWeights(Protocol):
    """A model with attention weights for a given target."""

    def read(self, batch: Batch) -> Mapping[str, Float[Tensor, "batch target source"]]:
        """By name: "decoder" or "decoder.3/head.1".

        Row t has the weights that token t of the target, EOS included and BOS not, was predicted
        with.
        """


@dataclass(slots=True)
class Hypothesis:
    """One output of a search."""

    tokens: list[int]
    """Without BOS and EOS."""

    score: float
    """What hypotheses are ranked by: the log-probability, with the search's length penalty."""

    log_prob: float
    weights: Float[Tensor, "target source"] | None = None
    """This hypothesis's own attention weights, a row for each token; one more for EOS if it has
    ended."""

    ended: bool = True
    """False if it was truncated at the maximum length."""


@runtime_checkable
class Search(Protocol):
    """Greedy, beam or sampling: a value with its options."""

    def __call__(self, model: Stepper, batch: Batch) -> list[list[Hypothesis]]:
        """For each sentence of the batch its hypotheses, the best first."""


@dataclass(slots=True)
class Prediction:
    """A hypothesis as text, with its tokens and attention weights."""

    text: str
    score: float
    source: list[str] = field(default_factory=list)
    """The source's tokens, as many as the weights have columns."""

    target: list[str] = field(default_factory=list)
    weights: Float[Tensor, "target source"] | None = None
    tokens: list[int] = field(default_factory=list)
    """The ids of the target's tokens."""
