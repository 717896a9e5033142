"""A Transformer's step in few calls: scaled dot products on a CPU, without a gradient.

One token at a time, to call an operation takes longer than to compute it. Here a layer asks for
queries, keys and values in one product, and reads all heads in one call of C. Keys and values of
the target stay where that product left them: what moves with a beam is which of each step's rows
are its own. What it gives is what the layers give by themselves.
"""

from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.kernels import native, native_multihead_step
from regard.attention.multihead import MultiHead
from regard.seq2seq.decoders.base import DecoderState, DecoderStep
from regard.seq2seq.nn.embeddings import sinusoids
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
from regard.seq2seq.protocols import Encoded


@runtime_checkable
class FusableDecoderLayer(Protocol):
    """A layer of a Transformer's decoder."""

    self_attention: MultiHead
    cross_attention: MultiHead
    feed_forward: nn.Sequential
    self_residual: Residual
    cross_residual: Residual
    ffn_residual: Residual


class FusedDecoderLayer:
    """A layer's weights, as a step uses them.

    Args:
        layer: Whose they are.
        last: The norm that comes after it, if the layers normalise before their parts.
    """

    def __init__(self, layer: FusableDecoderLayer, last: nn.LayerNorm) -> None:
        self_attention, cross_attention = layer.self_attention, layer.cross_attention
        into, out = feed_forward_linears(layer.feed_forward)
        self.heads = self_attention.heads
        self.self_attention = concat_linears(
            self_attention.query, self_attention.key, self_attention.value
        )
        self.source = concat_linears(cross_attention.key, cross_attention.value)
        self.asked, self.into = detached_linear(cross_attention.query), detached_linear(into)
        self.parts = LayerParts(
            (self_attention.out, cross_attention.out, out), _residuals(layer), last
        )


@dataclass(slots=True)
class FusedDecoderCache:
    """What all sentences of a batch have in common."""

    layers: list[FusedDecoderLayer]
    norm: nn.LayerNorm | None
    """What comes before the first layer, if the layers normalise before their parts."""

    past: tuple[tuple[Tensor, ...], ...] = ()
    """For each layer, keys and values of every step's rows."""

    places: Tensor = field(default_factory=lambda: torch.empty(0, 0))

    def place(self, number: int, size: int) -> Float[Tensor, " size"]:
        """Where the token of this number stands; more are found than are asked for."""
        if number >= len(self.places):
            self.places = sinusoids(torch.arange(2 * number + 64), size, torch.float32)
        return self.places[number]


def is_supported(layers: list[FusableDecoderLayer], embedding: nn.Embedding) -> bool:
    """Can these layers be stepped through so, here and now?"""
    return runs_natively(embedding) and all(
        is_plain_attention(
            (layer.self_attention, layer.cross_attention), layer.feed_forward, _residuals(layer)
        )
        for layer in layers
    )


def _residuals(layer: FusableDecoderLayer) -> tuple[Residual, ...]:
    return layer.self_residual, layer.cross_residual, layer.ffn_residual


def start(layers: list[FusableDecoderLayer], last: nn.Module, encoded: Encoded) -> DecoderState:
    """The source, projected once for each layer; nothing of the target.

    Args:
        layers: The decoder's.
        last: The norm after them, if they normalise before their parts.
        encoded: What is known of the source.
    """
    norms = [layer.self_residual.norm for layer in layers]
    after = next_norm(norms, last)
    packed = [FusedDecoderLayer(layer, norm) for layer, norm in zip(layers, after, strict=True)]
    beside = {"lengths": encoded.lengths[:, None]}
    for number, layer in enumerate(packed):
        pairs = build_layers(encoded.values.flatten(0, 1), layer.source)
        beside[f"source.{number}"] = pairs.unflatten(0, encoded.values.shape[:2])[:, None]
    norm = norms[0] if packed[0].parts.first else None
    return DecoderState(
        per_sentence=beside, weights_cache=FusedDecoderCache(packed, norm, ((),) * len(packed))
    )


def step(vectors: Float[Tensor, "sentence beam size"], state: DecoderState) -> DecoderStep:
    """One more token."""
    shared: FusedDecoderCache = state.weights_cache
    sentences, beams, size = vectors.shape
    seen = (vectors * size**0.5 + shared.place(len(shared.past[0]), size)).flatten(0, 1)
    normal = seen if shared.norm is None else native.add_layernorm(seen, None, None, shared.norm)
    rows, past, weights = _rows(state, sentences, beams), [], None
    lengths = state.per_sentence["lengths"][:, 0].contiguous()
    for number, layer in enumerate(shared.layers):
        joint = build_layers(normal, layer.self_attention)
        past.append((*shared.past[number], joint[:, size:]))
        read = native_multihead_step.past_heads(joint, past[-1], rows.flatten(0, 1), layer.heads)
        seen, normal = layer.parts.after(0, seen, read)
        source = state.per_sentence[f"source.{number}"][:, 0]
        if layer is shared.layers[-1]:
            weights = seen.new_empty(len(seen), layer.heads, source.shape[1])
        asked = build_layers(normal, layer.asked)
        read = native_multihead_step.heads(asked, source, lengths, layer.heads, weights)
        seen, normal = layer.parts.after(1, seen, read)
        seen, normal = layer.parts.after(2, seen, build_layers(normal, layer.into).relu_())
    assert weights is not None
    after = DecoderState(
        {"rows": rows}, state.per_sentence, weights_cache=replace(shared, past=tuple(past))
    )
    shape = (sentences, beams)
    return DecoderStep(normal.unflatten(0, shape), after, weights.mean(1).unflatten(0, shape))


def _rows(state: DecoderState, sentences: int, beams: int) -> Int[Tensor, "sentence beam step"]:
    """Which rows of the steps so far, and of this one, are each beam's."""
    new = torch.arange(sentences * beams).view(sentences, beams, 1)
    return torch.cat([state.per_beam["rows"], new], -1) if state.per_beam else new
