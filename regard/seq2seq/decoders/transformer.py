"""A decoder in which every token reads those before it, and the source, in each layer."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.core.options import check_int
from regard.attention.masks import Causal
from regard.attention.memory import Memory
from regard.attention.reading import Reading
from regard.attention.state import State
from regard.seq2seq.decoders import fused_decoder
from regard.seq2seq.decoders.base import (
    AttentionRecords,
    DecoderOutput,
    DecoderState,
    DecoderStep,
    shown,
    source_memory,
)
from regard.seq2seq.decoders.kv_cache import append, extend_state
from regard.seq2seq.nn.embeddings import embedding
from regard.seq2seq.nn.module_list import TypedModuleList
from regard.seq2seq.nn.transformer import (
    AttentionFactory,
    Norm,
    PositionalEncoding,
    Residual,
    build_attention,
    feed_forward,
    final_norm,
)
from regard.seq2seq.protocols import Encoded


class TransformerDecoder(nn.Module):
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

    has_attention = True

    def __init__(
        self,
        vocabulary: int,
        size: int,
        source_size: int,
        make: AttentionFactory,
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
        self.placed = PositionalEncoding(dropout)
        self.layers = TypedModuleList(
            _DecoderLayer(size, source_size, make, heads, inner, dropout, norm)
            for _ in range(check_int("layers", layers, 1))
        )
        self.norm = final_norm(size, norm)

    def forward(self, inputs: Int[Tensor, "batch target"], encoded: Encoded) -> DecoderOutput:
        seen, readings = self.placed(self.embedding(inputs)), {}
        for number, layer in enumerate(self.layers):
            seen, reading = layer(seen, encoded)
            readings[f"decoder.{number}"] = AttentionRecords([reading])
        return DecoderOutput(self.norm(seen), readings)

    def start(self, encoded: Encoded, width: int) -> DecoderState:
        if fused_decoder.is_supported(list(self.layers), self.embedding):
            return fused_decoder.start(list(self.layers), self.norm, encoded)
        return DecoderState(
            source=[source_memory(layer.cross_attention, encoded) for layer in self.layers]
        )

    def step(self, tokens: Int[Tensor, "sentence beam"], state: DecoderState) -> DecoderStep:
        if state.weights_cache is not None:
            return fused_decoder.step(self.embedding(tokens), state)
        done = len(state.self_memories[0]) if state.self_memories else 0
        seen = self.placed(self.embedding(tokens)[:, :, None], done)  # (sentence, beam, 1, size)
        after = DecoderState(source=state.source)
        for number, layer in enumerate(self.layers):
            own = state.self_memories[number] if state.self_memories else None
            names = f"own.{number}", f"decoder.{number}"
            traces = state.attention_states.get(names[0]), state.attention_states.get(names[1])
            seen, own, self_attention, reading = layer.step(seen, own, state.source[number], traces)
            after.self_memories.append(own)
            after.attention_states.update(
                zip(names, (self_attention.state, reading.state), strict=True)
            )
        weights = shown(reading.weights, seen.ndim)
        return DecoderStep(self.norm(seen)[:, :, 0], after, weights[:, :, 0])


class _DecoderLayer(nn.Module):
    def __init__(
        self, size: int, source_size: int, make: AttentionFactory, heads: int,
        inner: int, dropout: float, norm: Norm,
    ) -> None:  # fmt: skip
        super().__init__()
        self.self_attention = build_attention(make, heads, size, size)
        self.cross_attention = build_attention(make, heads, size, source_size)
        self.feed_forward = feed_forward(size, inner, dropout)
        self.self_residual, self.cross_residual, self.ffn_residual = (
            Residual(size, dropout, norm) for _ in range(3)
        )

    def forward(
        self, seen: Float[Tensor, "batch target size"], encoded: Encoded
    ) -> tuple[Float[Tensor, "batch target size"], Reading]:
        # Padding comes last, so that to hide what comes after is to hide it.
        asking = self.self_residual.before(seen)
        recalled = self.self_attention(asking, asking, asking, mask=Causal())
        seen = self.self_residual.after(seen, recalled.context)
        values = encoded.values
        reading = self.cross_attention(
            self.cross_residual.before(seen), values, values, mask=encoded.mask
        )
        seen = self.cross_residual.after(seen, reading.context)
        return self._feed_forward(seen), reading

    def step(
        self,
        seen: Float[Tensor, "sentence beam 1 size"],
        own: Memory | None,
        source: Memory,
        traces: tuple[State | None, State | None],
    ) -> tuple[Float[Tensor, "sentence beam 1 size"], Memory, Reading, Reading]:
        """One more token: the memory of the target with it, and what both attentions read."""
        asking = self.self_residual.before(seen)
        own = append(self.self_attention, own, asking)
        trace = extend_state(self.self_attention, own, traces[0], seen.shape[1])
        recalled = self.self_attention.read(asking, own, state=trace)
        seen = self.self_residual.after(seen, recalled.context)
        reading = self.cross_attention.read(
            self.cross_residual.before(seen), source, state=traces[1]
        )
        seen = self.cross_residual.after(seen, reading.context)
        return self._feed_forward(seen), own, recalled, reading

    def _feed_forward(self, seen: Float[Tensor, "*batch size"]) -> Float[Tensor, "*batch size"]:
        return self.ffn_residual.after(seen, self.feed_forward(self.ffn_residual.before(seen)))
