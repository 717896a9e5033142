"""A Transformer's step in few calls: scaled dot products on a CPU, without a gradient.

One token at a time, to call an operation takes longer than to compute it. Here a layer asks for
queries, keys and values in one product, keeps keys and values side by side as one tensor, and reads
all heads in one call of C. What it gives is what the layers give by themselves.
"""

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from regard.attention.heads import MultiHead
from regard.attention.kernels import chosen, native
from regard.attention.scores import ScaledDot
from regard.attention.selection import Softmax
from regard.seq2seq.decoders.base import Carried, Stepped
from regard.seq2seq.embeddings import sinusoids
from regard.seq2seq.seams import Encoded
from regard.seq2seq.transformer_parts import Residual

Seen = Float[Tensor, "row size"]


@runtime_checkable
class Layer(Protocol):
    """A layer of a Transformer's decoder."""

    inward: MultiHead
    across: MultiHead
    recalled: Residual
    read: Residual

    def thinks(self, seen: Seen) -> Seen:
        """The part that looks at each token alone."""


@dataclass(slots=True)
class Packed:
    """The weights of a decoder as its steps need them, and where tokens stand."""

    inward: list[tuple[Tensor, Tensor | None]]
    """Of each layer, what makes queries, keys and values in one product."""

    places: Tensor = field(default_factory=lambda: torch.empty(0, 0))

    def place(self, number: int, size: int) -> Float[Tensor, " size"]:
        """Where the token of this number stands; more are found than are asked for."""
        if number >= len(self.places):
            self.places = sinusoids(torch.arange(2 * number + 64), size, torch.float32)
        return self.places[number]


def serves(layers: list[Layer], embedding: nn.Embedding) -> bool:
    """Can these layers be stepped through so, here and now?"""
    weight = embedding.weight
    return (
        native.library() is not None
        and not chosen()
        and not torch.is_grad_enabled()
        and not embedding.training
        and not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled("cpu")
        and weight.is_cpu
        and weight.dtype == torch.float32
        and all(_plain(reader) for layer in layers for reader in (layer.inward, layer.across))
    )


def _plain(reader: MultiHead) -> bool:
    score, select = reader.attention.score, reader.attention.select
    return (
        type(score) is ScaledDot
        and score.scale is None
        and score.factor is None
        and type(select) is Softmax
        and select.temperature == 1.0
        and reader.heads == reader.key_heads
        and all(type(own) is nn.Linear for own in (reader.query, reader.key, reader.value))
    )


def start(layers: list[Layer], encoded: Encoded) -> Carried:
    """The source, projected once for each layer; nothing of the target."""
    packed = Packed([_joined(each.inward.query, *_pair(each.inward)) for each in layers])
    beside = {"lengths": encoded.lengths[:, None]}
    for number, layer in enumerate(layers):
        pairs = functional.linear(encoded.values, *_joined(*_pair(layer.across)))
        beside[f"source.{number}"] = pairs[:, None]
    return Carried(beside=beside, shared=packed)


def step(
    layers: list[Layer], vectors: Float[Tensor, "sentence beam size"], state: Carried
) -> Stepped:
    """One more token; the features are not normalised yet."""
    packed: Packed = state.shared
    sentences, beams, size = vectors.shape
    done = state.moving["own.0"].shape[2] if state.moving else 0
    seen = (vectors * size**0.5 + packed.place(done, size)).flatten(0, 1)
    lengths, moving = state.beside["lengths"][:, 0].contiguous(), {}
    for number, layer in enumerate(layers):
        name = f"own.{number}"
        made = functional.linear(layer.recalled.before(seen), *packed.inward[number])
        moving[name] = own = _longer(state.moving.get(name), made[:, size:], beams)
        read = native.heads(made, own.flatten(0, 1), None, layer.inward.heads, None)
        seen = layer.recalled.after(seen, layer.inward.out(read))
        source, weights = state.beside[f"source.{number}"][:, 0], None
        if layer is layers[-1]:
            weights = seen.new_empty(len(seen), layer.across.heads, source.shape[1])
        asked = layer.across.query(layer.read.before(seen))
        read = native.heads(asked, source, lengths, layer.across.heads, weights)
        seen = layer.thinks(layer.read.after(seen, layer.across.out(read)))
    assert weights is not None
    after = Carried(moving, state.beside, shared=packed)
    shape = (sentences, beams)
    return Stepped(seen.unflatten(0, shape), after, weights.mean(1).unflatten(0, shape))


def _longer(
    old: Float[Tensor, "sentence beam token pair"] | None,
    new: Float[Tensor, "row pair"],
    beams: int,
) -> Float[Tensor, "sentence beam longer pair"]:
    added = new.unflatten(0, (-1, beams))[:, :, None]
    return added.contiguous() if old is None else torch.cat([old, added], 2)


def _pair(reader: MultiHead) -> tuple[nn.Linear, nn.Linear]:
    return reader.key, reader.value


def _joined(*linears: nn.Linear) -> tuple[Tensor, Tensor | None]:
    """Several linear layers as one."""
    biases = [linear.bias for linear in linears]
    bias = None if biases[0] is None else torch.cat(tuple(biases))
    return torch.cat([linear.weight for linear in linears]), bias
