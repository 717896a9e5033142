"""What a fused Transformer decoder keeps for all sentences: concatenated weights, past keys."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.multihead import MultiHead
from regard.seq2seq.nn.embeddings import sinusoids
from regard.seq2seq.nn.fused_transformer import (
    FusedSublayers,
    concat_linears,
    feed_forward_linears,
    following_norms,
    transposed_linear,
)
from regard.seq2seq.nn.transformer import Residual


@runtime_checkable
class FusableDecoderLayer(Protocol):
    """A layer of a Transformer decoder."""

    self_attention: MultiHead
    cross_attention: MultiHead
    feed_forward: nn.Sequential
    self_residual: Residual
    cross_residual: Residual
    ffn_residual: Residual


class FusedDecoderLayer:
    """A layer's weights, as a fused step multiplies with them.

    Args:
        layer: Whose they are.
        following: The first norm after it; used if the layer is pre-norm.
    """

    def __init__(self, layer: FusableDecoderLayer, following: nn.LayerNorm) -> None:
        self_attention, cross = layer.self_attention, layer.cross_attention
        into, out = feed_forward_linears(layer.feed_forward)
        self.heads = self_attention.heads
        self.self_projections = concat_linears(
            self_attention.query, self_attention.key, self_attention.value
        )
        self.source_projections = concat_linears(cross.key, cross.value)
        self.cross_query, self.into = transposed_linear(cross.query), transposed_linear(into)
        self.sublayers = FusedSublayers(
            (self_attention.out, cross.out, out), residuals(layer), following
        )


@dataclass(slots=True)
class FusedDecoderCache:
    """What all sentences of a batch share."""

    layers: list[FusedDecoderLayer]
    norm: nn.LayerNorm | None
    """Before the first layer, if layers are pre-norm."""

    past: tuple[tuple[Tensor, ...], ...] = ()
    """For each layer, the keys and values of every step's rows."""

    positions: Tensor = field(default_factory=lambda: torch.empty(0, 0))

    @classmethod
    def of(cls, layers: Sequence[FusableDecoderLayer], final: nn.Module) -> "FusedDecoderCache":
        """Before the first step.

        Args:
            layers: The decoder's.
            final: The norm after them, if they are pre-norm.
        """
        norms = [layer.self_residual.norm for layer in layers]
        following = following_norms(norms, final)
        fused = [FusedDecoderLayer(*pair) for pair in zip(layers, following, strict=True)]
        norm = norms[0] if layers[0].self_residual.pre_norm else None
        return cls(fused, norm, ((),) * len(fused))

    def position(self, number: int, size: int) -> Float[Tensor, " size"]:
        """The encoding of one position; computed for many at a time."""
        if number >= len(self.positions):
            self.positions = sinusoids(torch.arange(2 * number + 64), size, torch.float32)
        return self.positions[number]


def residuals(layer: FusableDecoderLayer) -> tuple[Residual, ...]:
    """The residual connections of a layer, in order."""
    return layer.self_residual, layer.cross_residual, layer.ffn_residual
