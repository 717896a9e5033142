"""A Transformer decoder's step in few calls: scaled dot-product on a CPU, without gradients.

For one token, calling an operation takes longer than computing it. Here a layer projects queries,
keys and values in one product, and all heads attend in one call of C. Keys and values of the target
stay where that product left them: a beam carries which row of each step is its own. The outputs are
those of the layers.
"""

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.native import multihead_step
from regard.native.layer_norm import add_layernorm
from regard.seq2seq.decoders.base import DecoderState, DecoderStep
from regard.seq2seq.decoders.fused_cache import FusableDecoderLayer, FusedDecoderCache, residuals
from regard.seq2seq.nn.fused_transformer import affine, is_plain_layer, runs_natively
from regard.seq2seq.protocols import Encoded


def is_supported(layers: list[FusableDecoderLayer], embedding: nn.Embedding) -> bool:
    """Can these layers take fused steps, here and now?"""
    return runs_natively(embedding.training, embedding.weight) and all(
        is_plain_layer(
            (layer.self_attention, layer.cross_attention), layer.feed_forward, residuals(layer)
        )
        for layer in layers
    )


def start(layers: list[FusableDecoderLayer], final: nn.Module, encoded: Encoded) -> DecoderState:
    """The source, projected once for each layer; nothing of the target yet.

    Args:
        layers: The decoder's.
        final: The norm after them, if they are pre-norm.
        encoded: The source.
    """
    fused = FusedDecoderCache.of(layers, final)
    per_sentence = {"lengths": encoded.lengths[:, None]}
    for number, layer in enumerate(fused.layers):
        keys_values = affine(encoded.values.flatten(0, 1), layer.source_projections)
        per_sentence[f"source.{number}"] = keys_values.unflatten(0, encoded.values.shape[:2])[
            :, None
        ]
    return DecoderState(per_sentence=per_sentence, fused=fused)


def step(
    vectors: Float[Tensor, "sentence beam size"], state: DecoderState, fused: FusedDecoderCache
) -> DecoderStep:
    """One more token of each beam, by its embedding."""
    sentences, beams, size = vectors.shape
    hidden = vectors * size**0.5 + fused.position(len(fused.past[0]), size)
    hidden = hidden.flatten(0, 1)
    normed = hidden
    if fused.norm is not None:
        normed = add_layernorm(hidden, None, None, fused.norm)
    rows, past, weights = _rows(state, sentences, beams), [], None
    lengths = state.per_sentence["lengths"][:, 0].contiguous()
    for number, layer in enumerate(fused.layers):
        joint = affine(normed, layer.self_projections)
        past.append((*fused.past[number], joint[:, size:]))
        context = multihead_step.read_past(joint, past[-1], rows.flatten(0, 1), layer.heads)
        hidden, normed = layer.sublayers.add_norm(0, hidden, context)
        source = state.per_sentence[f"source.{number}"][:, 0]
        if layer is fused.layers[-1]:
            weights = hidden.new_empty(len(hidden), layer.heads, source.shape[1])
        queries = affine(normed, layer.cross_query)
        context = multihead_step.read_memory(queries, source, lengths, layer.heads, weights)
        hidden, normed = layer.sublayers.add_norm(1, hidden, context)
        inner = affine(normed, layer.into).relu_()
        hidden, normed = layer.sublayers.add_norm(2, hidden, inner)
    assert weights is not None
    after = DecoderState({"rows": rows}, state.per_sentence, fused=replace(fused, past=tuple(past)))
    shape = (sentences, beams)
    return DecoderStep(normed.unflatten(0, shape), after, weights.mean(1).unflatten(0, shape))


def _rows(state: DecoderState, sentences: int, beams: int) -> Int[Tensor, "sentence beam step"]:
    """Which row of each step so far, and of this one, is each beam's."""
    new = torch.arange(sentences * beams).view(sentences, beams, 1)
    return torch.cat([state.per_beam["rows"], new], -1) if state.per_beam else new
