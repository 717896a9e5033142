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
Linear = tuple[Tensor, Tensor | None]
"""A weight and its bias."""


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
    """A layer's weights, as a step uses them."""

    def __init__(self, layer: Layer) -> None:
        inward, across = layer.inward, layer.across
        into, *_, out = layer.forward_part
        assert isinstance(into, nn.Linear)
        assert isinstance(out, nn.Linear)
        self.heads = inward.heads
        self.inward = _joined(inward.query, inward.key, inward.value)
        self.source = _joined(across.key, across.value)
        self.recalled, self.asked, self.read = map(_own, (inward.out, across.query, across.out))
        self.into, self.out = _own(into), _own(out)
        self.norms = [each.norm for each in (layer.recalled, layer.read, layer.thought)]
        self.first = layer.recalled.first

    def before(self, part: int, seen: Seen) -> Seen:
        """What a part of the layer is given."""
        return self._normal(part, seen) if self.first else seen

    def after(self, part: int, seen: Seen, found: Seen) -> Seen:
        """What the next part is given; `found` is overwritten."""
        found += seen
        return found if self.first else self._normal(part, found)

    def _normal(self, part: int, seen: Seen) -> Seen:
        norm = self.norms[part]
        return torch.layer_norm(seen, norm.normalized_shape, norm.weight, norm.bias, norm.eps)


@dataclass(slots=True)
class Shared:
    """What all sentences of a batch have in common."""

    layers: list[Packed]
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
        and all(_plain(layer) for layer in layers)
    )


def _plain(layer: Layer) -> bool:
    """Is it made of scaled dot products, softmax and linear layers that nobody has replaced?"""
    linears = [layer.forward_part[0], layer.forward_part[-1]]
    for reader in (layer.inward, layer.across):
        score, select = reader.attention.score, reader.attention.select
        linears += [reader.query, reader.key, reader.value, reader.out]
        if type(score) is not ScaledDot or score.scale is not None or score.factor is not None:
            return False
        if type(select) is not Softmax or select.temperature != 1.0:
            return False
        if reader.heads != reader.key_heads:
            return False
    return all(type(linear) is nn.Linear for linear in linears)


def start(layers: list[Layer], encoded: Encoded) -> Carried:
    """The source, projected once for each layer; nothing of the target."""
    packed = [Packed(layer) for layer in layers]
    beside = {"lengths": encoded.lengths[:, None]}
    for number, layer in enumerate(packed):
        pairs = functional.linear(encoded.values, *layer.source)
        beside[f"source.{number}"] = pairs[:, None]
    return Carried(beside=beside, shared=Shared(packed))


def step(vectors: Float[Tensor, "sentence beam size"], state: Carried) -> Stepped:
    """One more token; the features are not normalised yet."""
    shared: Shared = state.shared
    sentences, beams, size = vectors.shape
    done = state.moving["own.0"].shape[2] if state.moving else 0
    seen = (vectors * size**0.5 + shared.place(done, size)).flatten(0, 1)
    lengths, moving, weights = state.beside["lengths"][:, 0].contiguous(), {}, None
    for number, layer in enumerate(shared.layers):
        name = f"own.{number}"
        made = functional.linear(layer.before(0, seen), *layer.inward)
        moving[name] = own = _longer(state.moving.get(name), made[:, size:], beams)
        read = native.heads(made, own.flatten(0, 1), None, layer.heads, None)
        seen = layer.after(0, seen, functional.linear(read, *layer.recalled))
        source = state.beside[f"source.{number}"][:, 0]
        if layer is shared.layers[-1]:
            weights = seen.new_empty(len(seen), layer.heads, source.shape[1])
        asked = functional.linear(layer.before(1, seen), *layer.asked)
        read = native.heads(asked, source, lengths, layer.heads, weights)
        seen = layer.after(1, seen, functional.linear(read, *layer.read))
        inside = functional.linear(layer.before(2, seen), *layer.into).relu_()
        seen = layer.after(2, seen, functional.linear(inside, *layer.out))
    assert weights is not None
    after, shape = Carried(moving, state.beside, shared=shared), (sentences, beams)
    return Stepped(seen.unflatten(0, shape), after, weights.mean(1).unflatten(0, shape))


def _longer(
    old: Float[Tensor, "sentence beam token pair"] | None,
    new: Float[Tensor, "row pair"],
    beams: int,
) -> Float[Tensor, "sentence beam longer pair"]:
    added = new.unflatten(0, (-1, beams))[:, :, None]
    return added.contiguous() if old is None else torch.cat([old, added], 2)


def _own(linear: nn.Linear) -> Linear:
    return linear.weight, linear.bias


def _joined(*linears: nn.Linear) -> Linear:
    """Several linear layers as one."""
    biases = [linear.bias for linear in linears]
    bias = None if biases[0] is None else torch.cat(tuple(biases))
    return torch.cat([linear.weight for linear in linears]), bias
