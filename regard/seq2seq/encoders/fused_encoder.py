"""A Transformer's encoder in few calls: scaled dot products on a CPU, without a gradient.

Keys and values are asked for in one product, and all heads of all places are read in one call of C,
which looks at no padding. What it gives is what the layers give by themselves, but for what stands
in the padding.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.kernels import native, native_multihead_step
from regard.attention.multihead import MultiHead
from regard.seq2seq.nn.fused_transformer import (
    LayerParts,
    build_layers,
    concat_linears,
    detached_linear,
    feed_forward_linears,
    is_plain_attention,
    next_norm,
    runs_natively,
)
from regard.seq2seq.nn.transformer import Residual

SHORT = 96
"""Sentences of up to so many tokens are read more quickly so than by torch's fused kernel."""


@runtime_checkable
class FusableEncoderLayer(Protocol):
    """A layer of a Transformer's encoder."""

    self_attention: MultiHead
    feed_forward: nn.Sequential
    self_residual: Residual
    ffn_residual: Residual


def is_supported(
    layers: Sequence[FusableEncoderLayer], embedding: nn.Embedding, ids: Int[Tensor, "batch length"]
) -> bool:
    """Can these tokens go through these layers so, here and now?"""
    return (
        ids.numel() > 0
        and ids.shape[1] <= SHORT
        and runs_natively(embedding)
        and all(
            is_plain_attention(
                (layer.self_attention,),
                layer.feed_forward,
                (layer.self_residual, layer.ffn_residual),
            )
            for layer in layers
        )
    )


def encode(
    vectors: Float[Tensor, "batch length size"],
    lengths: Int[Tensor, " batch"],
    layers: Sequence[FusableEncoderLayer],
    last: nn.Module,
) -> Float[Tensor, "batch length size"]:
    """What the layers make of vectors with their places, normalised by the last norm, if any.

    Args:
        vectors: Overwritten.
        lengths: Of the sentences.
        layers: The encoder's.
        last: The norm after them, if they normalise before their parts.
    """
    seen, lengths = vectors.flatten(0, 1), lengths.contiguous()
    norms = [layer.self_residual.norm for layer in layers]
    normal = (
        native.add_layernorm(seen, None, None, norms[0]) if layers[0].self_residual.first else seen
    )
    for layer, norm in zip(layers, next_norm(norms, last), strict=True):
        reader, (into, out) = layer.self_attention, feed_forward_linears(layer.feed_forward)
        parts = LayerParts((reader.out, out), (layer.self_residual, layer.ffn_residual), norm)
        pairs = build_layers(normal, concat_linears(reader.key, reader.value)).unflatten(
            0, vectors.shape[:2]
        )
        asked = build_layers(normal, detached_linear(reader.query))
        read = native_multihead_step.heads(asked, pairs, lengths, reader.heads, None)
        seen, normal = parts.after(0, seen, read)
        seen, normal = parts.after(1, seen, build_layers(normal, detached_linear(into)).relu_())
    return normal.unflatten(0, vectors.shape[:2])
