"""Encoder–decoder models."""

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
    """Keys of all recurrent models."""

    embedding: Width = 128
    """Size of the token embeddings."""

    state_size: Width = 256
    """Size of the decoder's state."""

    cell: Literal["gru", "lstm"] = "gru"
    """Recurrent cell."""

    dropout: Share = 0.1
    """Dropout between layers."""


class AttentiveConfig(RecurrentConfig, ABC):
    """Keys of all recurrent models with attention."""

    encoder_size: Width = 128
    """Size of the encoder's state in each of its two directions."""

    score: ScoreConfig
    """Attention score."""

    selection: SelectionConfig = SoftmaxConfig()
    """How scores become attention weights."""

    copying: bool = False
    """Pointer-generator: copy source words by their attention weights (See 2017)?"""

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
    """Number of encoder and of decoder layers."""

    reverse_source: bool = True
    """Reverse the source?"""


class BahdanauConfig(AttentiveConfig):
    """Attention before each step of the decoder's RNN (Bahdanau 2015)."""

    kind: Literal["bahdanau"] = "bahdanau"

    score: ScoreConfig = AdditiveConfig()
    """Attention score."""


class LuongConfig(AttentiveConfig):
    """Attention after each step of the decoder's RNN (Luong 2015)."""

    kind: Literal["luong"] = "luong"

    layers: Layers = 1
    """Number of encoder and of decoder layers."""

    feeding: bool = True
    """Input feeding: give the attentional vector to the next step? Training is faster without."""

    score: ScoreConfig = BilinearConfig()
    """Attention score."""


class TransformerConfig(Options):
    """Transformer (Vaswani 2017)."""

    kind: Literal["transformer"] = "transformer"

    size: Width = 128
    """Size of the model."""

    layers: Layers = 4
    """Number of encoder and of decoder layers."""

    heads: Width = 4
    """Number of attention heads; must divide `size`."""

    inner: Width = 256
    """Size of the feed-forward layer."""

    dropout: Share = 0.1
    """Residual and embedding dropout."""

    norm: Literal["pre", "post"] = "pre"
    """Layer norm before or after each sublayer."""

    tied: bool = True
    """Tie the embeddings and the output layer?"""

    score: ScoreConfig = ScaledDotConfig()
    """Attention score of each head."""

    selection: SelectionConfig = SoftmaxConfig()
    """How scores become attention weights."""

    copying: bool = False
    """Pointer-generator: copy source words by their attention weights (See 2017)?"""

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
                "hard with reinforce cannot train a transformer: it samples in every layer. "
                'Set selection.gradient = "gumbel", or choose another selection.'
            )
        return self


ModelConfig = Annotated[
    NoAttentionConfig | BahdanauConfig | LuongConfig | TransformerConfig,
    Field(discriminator="kind"),
]
