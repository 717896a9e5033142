"""Which model reads the source and writes the target."""

from abc import ABC
from typing import Annotated, Literal

from pydantic import Field, model_validator

from regard.tasks.config.options import Layers, Options, Share, Width
from regard.tasks.config.score import (
    AdditiveConfig,
    BilinearConfig,
    CoverageConfig,
    ScaledDotConfig,
    ScoreConfig,
)
from regard.tasks.config.selection import HardConfig, SelectionConfig, SoftmaxConfig

ONE_SIZE = ("dot", "scaled_dot", "cosine", "gaussian", "inverse_distance")
"""Scores that compare vectors of one size only."""


class RecurrentConfig(Options, ABC):
    """What all models with a recurrent state have."""

    embedding: Width = 128
    """Size of a token's vector."""

    state_size: Width = 256
    """Size of the decoder's state."""

    cell: Literal["gru", "lstm"] = "gru"
    """How a state becomes the next one."""

    dropout: Share = 0.1
    """What share of the numbers between the parts is left out in training."""


class AttentiveConfig(RecurrentConfig, ABC):
    """What all recurrent models with attention have."""

    encoder_size: Width = 128
    """Size of the encoder's state in each of its two directions."""

    score: ScoreConfig
    """How relevant a place of the source is."""

    selection: SelectionConfig = SoftmaxConfig()
    """How much of each place is read."""

    copying: bool = False
    """Copy words of the source, too, by how much they are read (See 2017)?"""

    @model_validator(mode="after")
    def _can_be_compared(self) -> "AttentiveConfig":
        kind = (self.score.inner if isinstance(self.score, CoverageConfig) else self.score).kind
        if kind in ONE_SIZE and self.state_size != 2 * self.encoder_size:
            raise ValueError(
                f"{kind} compares vectors of one size, but state_size is {self.state_size} and "
                f"the encoder's two directions have 2 · {self.encoder_size} = "
                f'{2 * self.encoder_size}. Make them equal, or choose score = "bilinear".'
            )
        return self


class NoAttentionConfig(RecurrentConfig):
    """No attention: the whole source in one vector (Sutskever 2014)."""

    kind: Literal["plain"] = "plain"

    layers: Layers = 1
    """How many layers encoder and decoder have."""

    reverse_source: bool = True
    """Read the source from its end?"""


class BahdanauConfig(AttentiveConfig):
    """Reads the source before each step of the state (Bahdanau 2015)."""

    kind: Literal["bahdanau"] = "bahdanau"

    score: ScoreConfig = AdditiveConfig()
    """How relevant a place of the source is."""


class LuongConfig(AttentiveConfig):
    """Reads the source after each step of the state (Luong 2015)."""

    kind: Literal["luong"] = "luong"

    layers: Layers = 1
    """How many layers encoder and decoder have."""

    feeding: bool = True
    """Is what was read given to the next step? Without, training is quicker."""

    score: ScoreConfig = BilinearConfig()
    """How relevant a place of the source is."""


class TransformerConfig(Options):
    """Attention all the way (Vaswani 2017)."""

    kind: Literal["transformer"] = "transformer"

    size: Width = 128
    """Size of every vector between the layers."""

    layers: Layers = 4
    """How many layers encoder and decoder have, each."""

    heads: Width = 4
    """How many heads share the size."""

    inner: Width = 256
    """Size inside a layer's feed-forward part."""

    dropout: Share = 0.1
    """What share of the numbers between the parts is left out in training."""

    norm: Literal["pre", "post"] = "pre"
    """Are vectors normalised before each part, or after it?"""

    tied: bool = True
    """Are embeddings and output layer one table?"""

    score: ScoreConfig = ScaledDotConfig()
    """How relevant a place is, within each head."""

    selection: SelectionConfig = SoftmaxConfig()
    """How much of each place is read."""

    copying: bool = False
    """Copy words of the source, too, by how much they are read (See 2017)?"""

    @model_validator(mode="after")
    def _heads_share_the_size(self) -> "TransformerConfig":
        if self.size % self.heads:
            raise ValueError(
                f"heads is {self.heads} and size {self.size}, which cannot be shared equally. "
                f"Give a size that {self.heads} divides: {-(-self.size // self.heads) * self.heads}"
                ", say."
            )
        return self

    @model_validator(mode="after")
    def _draws_can_be_learned(self) -> "TransformerConfig":
        if isinstance(self.selection, HardConfig) and self.selection.gradient == "reinforce":
            raise ValueError(
                "hard learns by reinforce, which a transformer cannot: it draws in every layer. "
                'Set selection.gradient = "gumbel", or choose another selection.'
            )
        return self


ModelConfig = Annotated[
    NoAttentionConfig | BahdanauConfig | LuongConfig | TransformerConfig,
    Field(discriminator="kind"),
]
