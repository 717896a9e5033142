"""A Transformer decoder: every token attends to those before it, and to the source."""

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
    mean_over_heads,
    source_memory,
)
from regard.seq2seq.decoders.kv_cache import append, extend_state
from regard.seq2seq.nn.embeddings import build_embedding
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
    """Layers of causal self-attention and of attention to the source (Vaswani 2017, section 3.1).

    Args:
        vocab_size: Size of the vocabulary.
        size: Size of an embedding, of every layer and of the features.
        source_size: Size of an encoded source position.
        make: Builds the attention of one head, for vectors of `size // heads`.
        layers: How many layers.
        heads: How many heads each attention has.
        inner: Hidden size of the feed-forward network.
        dropout: Dropout rate.
        norm: Layer norm before each sublayer, "pre", or after it, "post".
    """

    has_attention = True

    def __init__(
        self,
        vocab_size: int,
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
        self.embedding = build_embedding(vocab_size, size)
        self.positions = PositionalEncoding(dropout)
        self.layers = TypedModuleList(
            _DecoderLayer(size, source_size, make, heads, inner, dropout, norm)
            for _ in range(check_int("layers", layers, 1))
        )
        self.norm = final_norm(size, norm)

    def forward(self, inputs: Int[Tensor, "batch target"], encoded: Encoded) -> DecoderOutput:
        hidden, readings = self.positions(self.embedding(inputs)), {}
        for number, layer in enumerate(self.layers):
            hidden, reading = layer(hidden, encoded)
            readings[f"decoder.{number}"] = AttentionRecords([reading])
        return DecoderOutput(self.norm(hidden), readings)

    def start(self, encoded: Encoded, width: int) -> DecoderState:
        if fused_decoder.is_supported(list(self.layers), self.embedding):
            return fused_decoder.start(list(self.layers), self.norm, encoded)
        return DecoderState(
            source=[source_memory(layer.cross_attention, encoded) for layer in self.layers]
        )

    def step(self, tokens: Int[Tensor, "sentence beam"], state: DecoderState) -> DecoderStep:
        if state.fused is not None:
            return fused_decoder.step(self.embedding(tokens), state, state.fused)
        position = len(state.self_memories[0]) if state.self_memories else 0
        # (sentence, beam, 1, size)
        hidden = self.positions(self.embedding(tokens)[:, :, None], position)
        after = DecoderState(source=state.source)
        for number, layer in enumerate(self.layers):
            memory = state.self_memories[number] if state.self_memories else None
            names = f"self.{number}", f"decoder.{number}"
            states = state.attention_states.get(names[0]), state.attention_states.get(names[1])
            hidden, memory, self_reading, cross_reading = layer.step(
                hidden, memory, state.source[number], states
            )
            after.self_memories.append(memory)
            after.attention_states.update(
                zip(names, (self_reading.state, cross_reading.state), strict=True)
            )
        weights = mean_over_heads(cross_reading.weights, hidden.ndim)
        return DecoderStep(self.norm(hidden)[:, :, 0], after, weights[:, :, 0])


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
        self, hidden: Float[Tensor, "batch target size"], encoded: Encoded
    ) -> tuple[Float[Tensor, "batch target size"], Reading]:
        # Padding comes last, so that a causal mask hides it.
        inputs = self.self_residual.before(hidden)
        self_reading = self.self_attention(inputs, inputs, inputs, mask=Causal())
        hidden = self.self_residual.after(hidden, self_reading.context)
        queries, values = self.cross_residual.before(hidden), encoded.values
        cross_reading = self.cross_attention(queries, values, values, mask=encoded.mask)
        hidden = self.cross_residual.after(hidden, cross_reading.context)
        return self.ffn_residual(hidden, self.feed_forward), cross_reading

    def step(
        self,
        hidden: Float[Tensor, "sentence beam 1 size"],
        memory: Memory | None,
        source: Memory,
        states: tuple[State | None, State | None],
    ) -> tuple[Float[Tensor, "sentence beam 1 size"], Memory, Reading, Reading]:
        """One more token: its output, the longer memory, and what both attentions read."""
        inputs = self.self_residual.before(hidden)
        memory = append(self.self_attention, memory, inputs)
        state = extend_state(self.self_attention, memory, states[0], hidden.shape[1])
        self_reading = self.self_attention.read(inputs, memory, state=state)
        hidden = self.self_residual.after(hidden, self_reading.context)
        queries = self.cross_residual.before(hidden)
        cross_reading = self.cross_attention.read(queries, source, state=states[1])
        hidden = self.cross_residual.after(hidden, cross_reading.context)
        return self.ffn_residual(hidden, self.feed_forward), memory, self_reading, cross_reading
