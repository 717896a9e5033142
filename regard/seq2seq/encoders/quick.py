"""A Transformer's encoder in few calls: scaled dot products on a CPU, without a gradient.

Keys and values are asked for in one product, and all heads of all places are read in one call of C,
which looks at no padding. What it gives is what the layers give by themselves, but for what stands
in the padding.
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.heads import MultiHead
from regard.attention.kernels import native, native_heads
from regard.seq2seq.packed import Parts, ends, following, joined, made, own, plain, possible
from regard.seq2seq.transformer_parts import Residual

SHORT = 96
"""Sentences of up to so many tokens are read more quickly so than by torch's fused kernel."""


@runtime_checkable
class Layer(Protocol):
    """A layer of a Transformer's encoder."""

    reader: MultiHead
    forward_part: nn.Sequential
    read: Residual
    thought: Residual


def serves(
    layers: Sequence[Layer], embedding: nn.Embedding, ids: Int[Tensor, "batch length"]
) -> bool:
    """Can these tokens go through these layers so, here and now?"""
    return (
        ids.numel() > 0
        and ids.shape[1] <= SHORT
        and possible(embedding)
        and all(
            plain((layer.reader,), layer.forward_part, (layer.read, layer.thought))
            for layer in layers
        )
    )


def encode(
    vectors: Float[Tensor, "batch length size"],
    lengths: Int[Tensor, " batch"],
    layers: Sequence[Layer],
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
    norms = [layer.read.norm for layer in layers]
    normal = native.residual(seen, None, None, norms[0]) if layers[0].read.first else seen
    for layer, norm in zip(layers, following(norms, last), strict=True):
        reader, (into, out) = layer.reader, ends(layer.forward_part)
        parts = Parts((reader.out, out), (layer.read, layer.thought), norm)
        pairs = made(normal, joined(reader.key, reader.value)).unflatten(0, vectors.shape[:2])
        asked = made(normal, own(reader.query))
        read = native_heads.heads(asked, pairs, lengths, reader.heads, None)
        seen, normal = parts.after(0, seen, read)
        seen, normal = parts.after(1, seen, made(normal, own(into)).relu_())
    return normal.unflatten(0, vectors.shape[:2])
