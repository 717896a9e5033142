"""A decoder in which every token reads those before it, and the source, in each layer."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.masks import Causal
from regard.attention.memory import Memory
from regard.attention.options import whole
from regard.attention.reading import Reading
from regard.attention.state import State
from regard.seq2seq.decoders import quick
from regard.seq2seq.decoders.base import Carried, Readings, Stepped, Whole, shown, source_memory
from regard.seq2seq.decoders.growing import grown, lengthened
from regard.seq2seq.embeddings import embedding
from regard.seq2seq.layers import Layers
from regard.seq2seq.seams import Encoded
from regard.seq2seq.transformer_parts import (
    Make,
    Norm,
    Placed,
    Residual,
    forward_part,
    last_norm,
    reader,
)


class Transformer(nn.Module):
    """Layers of attention to the target so far and to the source (Vaswani 2017, section 3.1).

    Args:
        vocabulary: How many tokens there are.
        size: Size of a token's vector, in every layer, and of the features.
        source_size: Size of what is known of a source token.
        make: Builds the attention of one head, for vectors of `size // heads`.
        layers: How many layers.
        heads: How many heads each attention has.
        inner: Size of the space inside the part that looks at each token alone.
        dropout: What share goes missing in training.
        norm: Normalise before each part, "pre", or after it, "post".
    """

    reads = True

    def __init__(
        self,
        vocabulary: int,
        size: int,
        source_size: int,
        make: Make,
        *,
        layers: int,
        heads: int,
        inner: int,
        dropout: float = 0.0,
        norm: Norm = "pre",
    ) -> None:
        super().__init__()
        self.size = size
        self.embedding = embedding(vocabulary, size)
        self.placed = Placed(dropout)
        self.layers = Layers(
            _Layer(size, source_size, make, heads, inner, dropout, norm)
            for _ in range(whole("layers", layers, 1))
        )
        self.norm = last_norm(size, norm)

    def whole(self, inputs: Int[Tensor, "batch target"], encoded: Encoded) -> Whole:
        seen, readings = self.placed(self.embedding(inputs)), {}
        for number, layer in enumerate(self.layers):
            seen, reading = layer(seen, encoded)
            readings[f"decoder.{number}"] = Readings([reading])
        return Whole(self.norm(seen), readings)

    def start(self, encoded: Encoded, width: int) -> Carried:
        if quick.serves(list(self.layers), self.embedding):
            return quick.start(list(self.layers), self.norm, encoded)
        return Carried(source=[source_memory(layer.across, encoded) for layer in self.layers])

    def step(self, tokens: Int[Tensor, "sentence beam"], state: Carried) -> Stepped:
        if state.shared is not None:
            return quick.step(self.embedding(tokens), state)
        done = len(state.own[0]) if state.own else 0
        seen = self.placed(self.embedding(tokens)[:, :, None], done)  # (sentence, beam, 1, size)
        after = Carried(source=state.source)
        for number, layer in enumerate(self.layers):
            own = state.own[number] if state.own else None
            names = f"own.{number}", f"decoder.{number}"
            traces = state.traces.get(names[0]), state.traces.get(names[1])
            seen, own, inward, reading = layer.step(seen, own, state.source[number], traces)
            after.own.append(own)
            after.traces.update(zip(names, (inward.state, reading.state), strict=True))
        weights = shown(reading.weights, seen.ndim)
        return Stepped(self.norm(seen)[:, :, 0], after, weights[:, :, 0])


class _Layer(nn.Module):
    def __init__(
        self, size: int, source_size: int, make: Make, heads: int,
        inner: int, dropout: float, norm: Norm,
    ) -> None:  # fmt: skip
        super().__init__()
        self.inward = reader(make, heads, size, size)
        self.across = reader(make, heads, size, source_size)
        self.forward_part = forward_part(size, inner, dropout)
        self.recalled, self.read, self.thought = (Residual(size, dropout, norm) for _ in range(3))

    def forward(
        self, seen: Float[Tensor, "batch target size"], encoded: Encoded
    ) -> tuple[Float[Tensor, "batch target size"], Reading]:
        # Padding comes last, so that to hide what comes after is to hide it.
        asking = self.recalled.before(seen)
        recalled = self.inward(asking, asking, asking, mask=Causal())
        seen = self.recalled.after(seen, recalled.context)
        values = encoded.values
        reading = self.across(self.read.before(seen), values, values, mask=encoded.mask)
        seen = self.read.after(seen, reading.context)
        return self._thought(seen), reading

    def step(
        self,
        seen: Float[Tensor, "sentence beam 1 size"],
        own: Memory | None,
        source: Memory,
        traces: tuple[State | None, State | None],
    ) -> tuple[Float[Tensor, "sentence beam 1 size"], Memory, Reading, Reading]:
        """One more token: the memory of the target with it, and what both attentions read."""
        asking = self.recalled.before(seen)
        own = grown(self.inward, own, asking)
        trace = lengthened(self.inward, own, traces[0], seen.shape[1])
        recalled = self.inward.read(asking, own, state=trace)
        seen = self.recalled.after(seen, recalled.context)
        reading = self.across.read(self.read.before(seen), source, state=traces[1])
        seen = self.read.after(seen, reading.context)
        return self._thought(seen), own, recalled, reading

    def _thought(self, seen: Float[Tensor, "*batch size"]) -> Float[Tensor, "*batch size"]:
        return self.thought.after(seen, self.forward_part(self.thought.before(seen)))
