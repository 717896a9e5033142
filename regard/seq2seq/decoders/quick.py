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
from regard.attention.kernels import chosen, native, native_heads
from regard.attention.scores import ScaledDot
from regard.attention.selection import Softmax
from regard.seq2seq.decoders.base import Carried, Stepped
from regard.seq2seq.embeddings import sinusoids
from regard.seq2seq.seams import Encoded
from regard.seq2seq.transformer_parts import Residual
from regard.seq2seq.turned import turned

Seen = Float[Tensor, "row size"]
Linear = tuple[Tensor, Tensor]
"""A weight, `(in, out)`, and its bias."""


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
        into, *_, out = layer.forward_part
        assert isinstance(into, nn.Linear)
        assert isinstance(out, nn.Linear)
        self.heads = inward.heads
        self.inward = _joined(inward.query, inward.key, inward.value)
        self.source = _joined(across.key, across.value)
        self.asked, self.into = _own(across.query), _own(into)
        self.lasts = [_own(each) for each in (inward.out, across.out, out)]
        self.first = layer.recalled.first
        self.norms = [each.norm for each in (layer.recalled, layer.read, layer.thought)]
        if self.first:  # then a part is followed by the norm of the next
            self.norms = [*self.norms[1:], last]

    def after(self, part: int, seen: Seen, found: Float[Tensor, "row inner"]) -> tuple[Seen, Seen]:
        """What was seen with what a part found, and what the next part is given.

        Args:
            part: Which of the three.
            seen: What the part was given; overwritten.
            found: What it found, before its last linear layer.
        """
        weight, bias = self.lasts[part]
        normal = native.residual(seen, found @ weight, bias, self.norms[part])
        return (seen if self.first else normal), normal


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
    norms = [each.norm for each in (layer.recalled, layer.read, layer.thought)]
    return all(_biased(linear) for linear in linears) and all(
        type(norm) is nn.LayerNorm for norm in norms
    )


def _biased(linear: nn.Module) -> bool:
    return (
        type(linear) is nn.Linear and linear.bias is not None and not linear.weight.is_inference()
    )


def start(layers: list[Layer], last: nn.Module, encoded: Encoded) -> Carried:
    """The source, projected once for each layer; nothing of the target.

    Args:
        layers: The decoder's.
        last: The norm after them, if they normalise before their parts.
        encoded: What is known of the source.
    """
    norms = [layer.recalled.norm for layer in layers]
    following = [*norms[1:], last if isinstance(last, nn.LayerNorm) else norms[0]]
    packed = [Packed(layer, norm) for layer, norm in zip(layers, following, strict=True)]
    beside = {"lengths": encoded.lengths[:, None]}
    for number, layer in enumerate(packed):
        pairs = _made(encoded.values.flatten(0, 1), layer.source)
        beside[f"source.{number}"] = pairs.unflatten(0, encoded.values.shape[:2])[:, None]
    norm = norms[0] if packed[0].first else None
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
        made = _made(normal, layer.inward)
        past.append((*shared.past[number], made[:, size:]))
        read = native_heads.past_heads(made, past[-1], rows.flatten(0, 1), layer.heads)
        seen, normal = layer.after(0, seen, read)
        source = state.beside[f"source.{number}"][:, 0]
        if layer is shared.layers[-1]:
            weights = seen.new_empty(len(seen), layer.heads, source.shape[1])
        asked = _made(normal, layer.asked)
        read = native_heads.heads(asked, source, lengths, layer.heads, weights)
        seen, normal = layer.after(1, seen, read)
        seen, normal = layer.after(2, seen, _made(normal, layer.into).relu_())
    assert weights is not None
    after = Carried({"rows": rows}, state.beside, shared=replace(shared, past=tuple(past)))
    shape = (sentences, beams)
    return Stepped(normal.unflatten(0, shape), after, weights.mean(1).unflatten(0, shape))


def _rows(state: Carried, sentences: int, beams: int) -> Int[Tensor, "sentence beam step"]:
    """Which rows of the steps so far, and of this one, are each beam's."""
    new = torch.arange(sentences * beams).view(sentences, beams, 1)
    return torch.cat([state.moving["rows"], new], -1) if state.moving else new


def _made(inputs: Float[Tensor, "row in"], linear: Linear) -> Float[Tensor, "row out"]:
    return torch.addmm(linear[1], inputs, linear[0])


def _own(linear: nn.Linear) -> Linear:
    return turned(linear.weight), linear.bias


def _joined(*linears: nn.Linear) -> Linear:
    """Several linear layers as one."""
    weights = [turned(linear.weight) for linear in linears]
    return torch.cat(weights, 1), torch.cat([linear.bias for linear in linears])
