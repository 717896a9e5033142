"""Context after the state: go on first, then read."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.attend import Attention
from regard.attention.core.options import check_int
from regard.attention.kernels import deferred_gradients
from regard.seq2seq.decoders.base import (
    AttentionRecords,
    DecoderOutput,
    DecoderState,
    DecoderStep,
    source_memory,
)
from regard.seq2seq.decoders.rnn_stack import RNNStack
from regard.seq2seq.nn.deferred_linear import DeferredLinear
from regard.seq2seq.nn.dropout import Dropout
from regard.seq2seq.nn.embeddings import embedding as table
from regard.seq2seq.nn.rnn_cells import CellName
from regard.seq2seq.protocols import Encoded


class LuongDecoder(nn.Module):
    """The state h reads a context c; the features are h̃ = tanh(W [c; h]) (Luong 2015, eq. 5).

    Without feeding no state depends on what was read: training runs over all tokens at once. An
    attention that looks back reads token by token then, and nothing else does.

    Args:
        vocabulary: How many tokens there are.
        embedding: Size of a token's vector.
        size: Size of the state, which is the query, and of the features.
        source_size: Size of what is known of a source token.
        attention: Any score and selection, for queries of `size` and keys of `source_size`.
        cell: "gru" or "lstm".
        layers: How many layers; the highest one reads.
        dropout: What share of the vectors, of the layers and of the features goes missing.
        feeding: Give the last features to the next step, too (section 3.3)?
    """

    has_attention = True

    def __init__(
        self,
        vocabulary: int,
        embedding: int,
        size: int,
        source_size: int,
        attention: Attention,
        *,
        cell: CellName = "lstm",
        layers: int = 1,
        dropout: float = 0.0,
        feeding: bool = True,
    ) -> None:
        super().__init__()
        self.size = size
        self.embedding = table(vocabulary, embedding)
        self.attention = attention
        self.stack = RNNStack(cell, embedding, size, check_int("layers", layers, 1), dropout)
        self.begin = self.stack.beginning(source_size)
        self.feed = nn.Linear(size, self.stack.gates, bias=False) if feeding else None
        self.from_context = nn.Linear(source_size, size, bias=False)
        self.from_state = nn.Linear(size, size, bias=False)
        self.dropout = Dropout(dropout)

    def forward(self, inputs: Int[Tensor, "batch target"], encoded: Encoded) -> DecoderOutput:
        parts = self.stack.project(self.dropout(self.embedding(inputs.mT)))
        if self.feed is None:
            return self._at_once(parts, encoded)
        return self._fed(parts, encoded, DeferredLinear(self.feed))

    def start(self, encoded: Encoded, width: int) -> DecoderState:
        states = self.begin(encoded.summary[:, None].expand(-1, width, -1))
        moving = self.stack.flatten(states)
        if self.feed is not None:
            moving["features"] = encoded.values.new_zeros(len(encoded.values), width, self.size)
        return DecoderState(moving, source=[source_memory(self.attention, encoded)])

    def step(self, tokens: Int[Tensor, "sentence beam"], state: DecoderState) -> DecoderStep:
        parts = self.stack.project(self.embedding(tokens))
        if self.feed is not None:
            parts = parts + self.feed(state.per_beam["features"])
        states = self.stack.steps()(parts, self.stack.unflatten(state.per_beam))
        hidden = states[-1][0]
        reading = self.attention.read(
            hidden[:, :, None], state.source[0], state=state.attention_states.get("decoder")
        )
        context = reading.context[:, :, 0]
        features = torch.tanh(self.from_context(context) + self.from_state(hidden))
        moving = self.stack.flatten(states)
        if self.feed is not None:
            moving["features"] = features
        after = DecoderState(
            moving, source=state.source, attention_states={"decoder": reading.state}
        )
        return DecoderStep(features, after, reading.weights[:, :, 0])

    def _at_once(self, parts: Float[Tensor, "step batch gates"], encoded: Encoded) -> DecoderOutput:
        hidden = self.stack.forward_sequence(parts, self.begin(encoded.summary)).transpose(0, 1)
        reading = self.attention(hidden, encoded.values, encoded.values, mask=encoded.mask)
        features = torch.tanh(self.from_context(reading.context) + self.from_state(hidden))
        return DecoderOutput(self.dropout(features), {"decoder": AttentionRecords([reading])})

    def _fed(
        self, parts: Float[Tensor, "step batch gates"], encoded: Encoded, feed: DeferredLinear
    ) -> DecoderOutput:
        memory = self.attention.prepare(encoded.values, encoded.values, encoded.mask)
        from_context, from_state = (
            DeferredLinear(self.from_context),
            DeferredLinear(self.from_state),
        )
        steps, states, trace = self.stack.steps(), self.begin(encoded.summary), None
        fed, features, readings = parts.new_zeros(parts.shape[1], self.size), [], []
        with deferred_gradients():
            for own in parts.unbind(0):
                states = steps(own + feed(fed), states)
                hidden = states[-1][0]
                reading = self.attention.read(hidden[:, None], memory, state=trace)
                trace = reading.state
                seen = torch.tanh(from_context(reading.context[:, 0]) + from_state(hidden))
                fed = self.dropout(seen)
                features.append(fed)
                readings.append(reading)
        return DecoderOutput(torch.stack(features, 1), {"decoder": AttentionRecords(readings)})
