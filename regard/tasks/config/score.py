"""Which score compares a query with a key. Keys are named as the library's arguments are."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from regard.tasks.config.options import Options, Positive, Width


def _odd(size: int) -> int:
    if size % 2 == 0:
        raise ValueError("It has no middle. Give an odd number.")
    return size


class DotConfig(Options):
    """e = qᵀk."""

    kind: Literal["dot"] = "dot"


class ScaledDotConfig(Options):
    """e = qᵀk · scale."""

    kind: Literal["scaled_dot"] = "scaled_dot"

    scale: float | None = None
    """The factor; 1/√n for vectors of size n unless given."""

    learned: bool = False
    """Multiply by a factor that is learned, 1 at first?"""


class BilinearConfig(Options):
    """e = qᵀWk."""

    kind: Literal["bilinear"] = "bilinear"


class AdditiveConfig(Options):
    """e = vᵀ tanh(W_q q + W_k k)."""

    kind: Literal["additive"] = "additive"

    hidden_size: Width = 128
    """Hidden size."""


class CosineConfig(Options):
    """e = sharpness · cosine of q and k."""

    kind: Literal["cosine"] = "cosine"

    sharpness: Positive = 1.0
    """The factor."""

    learned: bool = False
    """Learn it, from this value on?"""


class GaussianConfig(Options):
    """e = −‖q − k‖² / 2σ²."""

    kind: Literal["gaussian"] = "gaussian"

    sigma: Positive = 1.0
    """σ: the width of the Gaussian."""

    learned: bool = False
    """Learn it, from this value on?"""


class InverseDistanceConfig(Options):
    """e = 1 / ‖q − k‖."""

    kind: Literal["inverse_distance"] = "inverse_distance"

    floor: Annotated[float, Field(ge=1e-18)] = 1e-3
    """Smaller distances count as this one."""


class LocationConfig(Options):
    """e = W q: a score for each position, independent of the keys."""

    kind: Literal["location"] = "location"

    max_keys: Width = 256
    """Maximum number of positions; a longer source is an error."""


class LocationAwareConfig(Options):
    """Additive, with a convolution over the last step's weights."""

    kind: Literal["location_aware"] = "location_aware"

    hidden_size: Width = 128
    """Hidden size."""

    filters: Width = 10
    """Number of convolution filters."""

    kernel_size: Annotated[Width, AfterValidator(_odd)] = 31
    """Width of each filter; an odd number."""


Inner = Annotated[
    DotConfig
    | ScaledDotConfig
    | BilinearConfig
    | AdditiveConfig
    | CosineConfig
    | GaussianConfig
    | InverseDistanceConfig
    | LocationConfig
    | LocationAwareConfig,
    Field(discriminator="kind"),
]


class CoverageConfig(Options):
    """Another score, plus weight · the key's sum of earlier attention weights."""

    kind: Literal["coverage"] = "coverage"

    inner: Inner = AdditiveConfig()
    """The other score."""

    weight: float = -1.0
    """Initial weight, learned; below 0, keys attended to before are avoided."""

    fertility: Positive | None = None
    """Maximum sum of a key's attention weights; no limit unless given."""


ScoreConfig = Annotated[
    DotConfig
    | ScaledDotConfig
    | BilinearConfig
    | AdditiveConfig
    | CosineConfig
    | GaussianConfig
    | InverseDistanceConfig
    | LocationConfig
    | LocationAwareConfig
    | CoverageConfig,
    Field(discriminator="kind"),
]
