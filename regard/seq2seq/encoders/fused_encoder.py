"""A Transformer encoder in few calls: scaled dot-product attention on a CPU, without gradients.

Keys and values are projected in one product, and all heads of all positions attend in one call of
C, which skips the padding. The outputs are those of the layers, except in the padding.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.multihead import MultiHead
from regard.native import multihead_step
from regard.native.layer_norm import add_layernorm
from regard.seq2seq.nn.fused_transformer import (
    FusedSublayers,
    affine,
    concat_linears,
    feed_forward_linears,
    following_norms,
    is_plain_layer,
    runs_natively,
    transposed_linear,
)
from regard.seq2seq.nn.transformer import Residual

MAX_LENGTH = 96
"""Up to so many tokens it is faster than torch's fused kernel."""


@runtime_checkable
class FusableEncoderLayer(Protocol):
    """A layer of a Transformer encoder."""

    self_attention: MultiHead
    feed_forward: nn.Sequential
    self_residual: Residual
    ffn_residual: Residual


def is_supported(
    layers: Sequence[FusableEncoderLayer], vectors: Float[Tensor, "batch length size"]
) -> bool:
    """Can these vectors go through these layers fused, here and now?"""
    return (
        vectors.numel() > 0
        and vectors.shape[1] <= MAX_LENGTH
        and runs_natively(layers[0].self_residual.training, vectors)
        and all(
            is_plain_layer((layer.self_attention,), layer.feed_forward, _residuals(layer))
            for layer in layers
        )
    )


def _residuals(layer: FusableEncoderLayer) -> tuple[Residual, Residual]:
    return layer.self_residual, layer.ffn_residual


def encode(
    vectors: Float[Tensor, "batch length size"],
    lengths: Int[Tensor, " batch"],
    layers: Sequence[FusableEncoderLayer],
    final: nn.Module,
) -> Float[Tensor, "batch length size"]:
    """What the layers and the final norm make of the vectors.

    Args:
        vectors: With their positions.
        lengths: Of the sequences.
        layers: The encoder's.
        final: The norm after them, if they are pre-norm.
    """
    # A copy, for sums are in place.
    hidden = vectors.flatten(0, 1).clone(memory_format=torch.contiguous_format)
    lengths = lengths.contiguous()
    norms = [layer.self_residual.norm for layer in layers]
    normed = hidden
    if layers[0].self_residual.pre_norm:
        normed = add_layernorm(hidden, None, None, norms[0])
    for layer, norm in zip(layers, following_norms(norms, final), strict=True):
        attention, (into, out) = layer.self_attention, feed_forward_linears(layer.feed_forward)
        sublayers = FusedSublayers((attention.out, out), _residuals(layer), norm)
        keys_values = affine(normed, concat_linears(attention.key, attention.value))
        queries = affine(normed, transposed_linear(attention.query))
        context = multihead_step.read_memory(
            queries, keys_values.unflatten(0, vectors.shape[:2]), lengths, attention.heads, None
        )
        hidden, normed = sublayers.add_norm(0, hidden, context)
        inner = affine(normed, transposed_linear(into)).relu_()
        hidden, normed = sublayers.add_norm(1, hidden, inner)
    return normed.unflatten(0, vectors.shape[:2])
