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

from regard.attention.heads import MultiHead
from regard.attention.kernels import native, native_heads
from regard.seq2seq.decoders.base import Carried, Stepped
from regard.seq2seq.embeddings import sinusoids
from regard.seq2seq.packed import Parts, ends, following, joined, made, own, plain, possible
from regard.seq2seq.seams import Encoded
from regard.seq2seq.transformer_parts import Residual


@runtime_checkable
class Layer(Protocol):
    """A layer of a Transformer's decoder."""

    inward: MultiHead
    across: MultiHead
    forward_part: nn.Sequential
    recalled: Residual
    read: Residual
    thought: Residual


class Packed:
    """A layer's weights, as a step uses them.

    Args:
        layer: Whose they are.
        last: The norm that comes after it, if the layers normalise before their parts.
    """

    def __init__(self, layer: Layer, last: nn.LayerNorm) -> None:
        inward, across = layer.inward, layer.across
        into, out = ends(layer.forward_part)
        self.heads = inward.heads
        self.inward = joined(inward.query, inward.key, inward.value)
        self.source = joined(across.key, across.value)
        self.asked, self.into = own(across.query), own(into)
        self.parts = Parts((inward.out, across.out, out), _residuals(layer), last)


@dataclass(slots=True)
class Shared:
    """What all sentences of a batch have in common."""

    layers: list[Packed]
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


def serves(layers: list[Layer], embedding: nn.Embedding) -> bool:
    """Can these layers be stepped through so, here and now?"""
    return possible(embedding) and all(
        plain((layer.inward, layer.across), layer.forward_part, _residuals(layer))
        for layer in layers
    )


def _residuals(layer: Layer) -> tuple[Residual, ...]:
    return layer.recalled, layer.read, layer.thought


def start(layers: list[Layer], last: nn.Module, encoded: Encoded) -> Carried:
    """The source, projected once for each layer; nothing of the target.

    Args:
        layers: The decoder's.
        last: The norm after them, if they normalise before their parts.
        encoded: What is known of the source.
    """
    norms = [layer.recalled.norm for layer in layers]
    after = following(norms, last)
    packed = [Packed(layer, norm) for layer, norm in zip(layers, after, strict=True)]
    beside = {"lengths": encoded.lengths[:, None]}
    for number, layer in enumerate(packed):
        pairs = made(encoded.values.flatten(0, 1), layer.source)
        beside[f"source.{number}"] = pairs.unflatten(0, encoded.values.shape[:2])[:, None]
    norm = norms[0] if packed[0].parts.first else None
    return Carried(beside=beside, shared=Shared(packed, norm, ((),) * len(packed)))


def step(vectors: Float[Tensor, "sentence beam size"], state: Carried) -> Stepped:
    """One more token."""
    shared: Shared = state.shared
    sentences, beams, size = vectors.shape
    seen = (vectors * size**0.5 + shared.place(len(shared.past[0]), size)).flatten(0, 1)
    normal = seen if shared.norm is None else native.residual(seen, None, None, shared.norm)
    rows, past, weights = _rows(state, sentences, beams), [], None
    lengths = state.beside["lengths"][:, 0].contiguous()
    for number, layer in enumerate(shared.layers):
        joint = made(normal, layer.inward)
        past.append((*shared.past[number], joint[:, size:]))
        read = native_heads.past_heads(joint, past[-1], rows.flatten(0, 1), layer.heads)
        seen, normal = layer.parts.after(0, seen, read)
        source = state.beside[f"source.{number}"][:, 0]
        if layer is shared.layers[-1]:
            weights = seen.new_empty(len(seen), layer.heads, source.shape[1])
        asked = made(normal, layer.asked)
        read = native_heads.heads(asked, source, lengths, layer.heads, weights)
        seen, normal = layer.parts.after(1, seen, read)
        seen, normal = layer.parts.after(2, seen, made(normal, layer.into).relu_())
    assert weights is not None
    after = Carried({"rows": rows}, state.beside, shared=replace(shared, past=tuple(past)))
    shape = (sentences, beams)
    return Stepped(normal.unflatten(0, shape), after, weights.mean(1).unflatten(0, shape))


def _rows(state: Carried, sentences: int, beams: int) -> Int[Tensor, "sentence beam step"]:
    """Which rows of the steps so far, and of this one, are each beam's."""
    new = torch.arange(sentences * beams).view(sentences, beams, 1)
    return torch.cat([state.moving["rows"], new], -1) if state.moving else new
