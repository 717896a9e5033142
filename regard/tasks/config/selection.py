"""Which selection turns scores into weights. Keys are named as the library's arguments are."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.tasks.config.options import (
    AtLeastZero,
    Options,
    Positive,
    Share,
    Size,
    Width,
    at_most,
)


class SoftmaxConfig(Options):
    """All weights above 0, summing to 1."""

    kind: Literal["softmax"] = "softmax"

    temperature: Positive = 1.0
    """Below 1 sharper, above 1 flatter."""

    dropout: Share = 0.0
    """Dropout on the attention weights."""


class SparsemaxConfig(Options):
    """Like softmax, but most weights are exactly 0."""

    kind: Literal["sparsemax"] = "sparsemax"

    dropout: Share = 0.0
    """Dropout on the attention weights."""


class EntmaxConfig(Options):
    """Between softmax (alpha 1) and sparsemax (alpha 2)."""

    kind: Literal["entmax"] = "entmax"

    alpha: Annotated[float, Field(ge=1)] = 1.5
    """The larger, the more weights are exactly 0."""

    learned: bool = False
    """Learn alpha between 1 and 2, from this value on?"""

    dropout: Share = 0.0
    """Dropout on the attention weights."""

    @model_validator(mode="after")
    def _can_be_learned(self) -> "EntmaxConfig":
        if self.learned and not 1.01 < self.alpha < 2:
            raise ValueError(
                f"alpha is {self.alpha} and learned. Give a number between 1.01 and 2, "
                "or learned = false."
            )
        return self


class HardConfig(Options):
    """One position only: sampled in training, the argmax otherwise."""

    kind: Literal["hard"] = "hard"

    gradient: Literal["reinforce", "gumbel"] = "reinforce"
    """Gradient estimator of the sample."""

    temperature: Positive = 1.0
    """Temperature of the Gumbel softmax."""


class LocalMonotonicConfig(Options):
    """A window around position t at step t."""

    kind: Literal["local_monotonic"] = "local_monotonic"

    window: Annotated[int, Field(ge=0), at_most(2**16)] = 10
    """Positions on each side of the centre."""

    dropout: Share = 0.0
    """Dropout on the attention weights."""


class LocalPredictiveConfig(Options):
    """A window around a position predicted from the query."""

    kind: Literal["local_predictive"] = "local_predictive"

    window: Annotated[int, Field(ge=0), at_most(2**16)] = 10
    """Positions on each side of the centre."""

    hidden_size: Width | None = None
    """Hidden size of the position predictor; the query's size unless given."""

    sigma: Positive | None = None
    """Width of the Gaussian in the window; half of `window` unless given."""

    dropout: Share = 0.0
    """Dropout on the attention weights."""


class MonotonicConfig(Options):
    """Monotonic attention: the position never moves back."""

    kind: Literal["monotonic"] = "monotonic"

    offset: float = 0.0
    """Initial value of a learned offset added to the scores; below 0 it moves fast at first."""

    noise: AtLeastZero = 1.0
    """Standard deviation of the noise on the scores in training."""


class TopKConfig(Options):
    """Softmax over the few best keys."""

    kind: Literal["top_k"] = "top_k"

    k: Size = 8
    """Number of keys."""

    dropout: Share = 0.0
    """Dropout on the attention weights."""


SelectionConfig = Annotated[
    SoftmaxConfig
    | SparsemaxConfig
    | EntmaxConfig
    | HardConfig
    | LocalMonotonicConfig
    | LocalPredictiveConfig
    | MonotonicConfig
    | TopKConfig,
    Field(discriminator="kind"),
]
