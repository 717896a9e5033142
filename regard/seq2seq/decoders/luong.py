"""Attention after the recurrent step: the new state is the query."""

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
from regard.seq2seq.nn.embeddings import build_embedding
from regard.seq2seq.nn.rnn_cells import CellName
from regard.seq2seq.protocols import Encoded


class LuongDecoder(nn.Module):
    """The state h reads a context c; the features are h̃ = tanh(W [c; h]) (Luong 2015, eq. 5).

    Without input feeding no state depends on a context: training runs over all tokens at once.
    Only an attention that needs its last step's weights reads token by token then.

    Args:
        vocab_size: Size of the vocabulary.
        embedding_size: Size of an embedding.
        size: Size of the state, which is the query, and of the features.
        source_size: Size of an encoded source position.
        attention: Any score and selection, for queries of `size` and keys of `source_size`.
        cell: "gru" or "lstm".
        layers: How many layers; the top one is the query.
        dropout: Dropout rate on the embeddings, between layers and on the features.
        input_feeding: Are the last features an input of the next step (section 3.3)?
    """

    has_attention = True

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        size: int,
        source_size: int,
        attention: Attention,
        *,
        cell: CellName = "lstm",
        layers: int = 1,
        dropout: float = 0.0,
        input_feeding: bool = True,
    ) -> None:
        super().__init__()
        self.size = size
        self.embedding = build_embedding(vocab_size, embedding_size)
        self.attention = attention
        layers = check_int("layers", layers, 1)
        self.stack = RNNStack(
            cell, embedding_size, size, source_size, layers=layers, dropout=dropout
        )
        self.feed = nn.Linear(size, self.stack.gates, bias=False) if input_feeding else None
        self.from_context = nn.Linear(source_size, size, bias=False)
        self.from_state = nn.Linear(size, size, bias=False)
        self.dropout = Dropout(dropout)

    def forward(self, inputs: Int[Tensor, "batch target"], encoded: Encoded) -> DecoderOutput:
        input_gates = self.stack.project(self.dropout(self.embedding(inputs.mT)))
        if self.feed is None:
            return self._parallel(input_gates, encoded)
        return self._stepwise(input_gates, encoded, DeferredLinear(self.feed))

    def start(self, encoded: Encoded, width: int) -> DecoderState:
        per_beam = self.stack.start(encoded.summary, width)
        if self.feed is not None:
            per_beam["features"] = encoded.values.new_zeros(len(encoded.values), width, self.size)
        return DecoderState(per_beam, source=[source_memory(self.attention, encoded)])

    def step(self, tokens: Int[Tensor, "sentence beam"], state: DecoderState) -> DecoderStep:
        input_gates = self.stack.project(self.embedding(tokens))
        if self.feed is not None:
            input_gates = input_gates + self.feed(state.per_beam["features"])
        states = self.stack.steps()(input_gates, self.stack.unflatten(state.per_beam))
        hidden = states[-1][0]
        reading = self.attention.read(
            hidden[:, :, None], state.source[0], state=state.attention_states.get("decoder")
        )
        context = reading.context[:, :, 0]
        features = torch.tanh(self.from_context(context) + self.from_state(hidden))
        per_beam = self.stack.flatten(states)
        if self.feed is not None:
            per_beam["features"] = features
        after = DecoderState(
            per_beam, source=state.source, attention_states={"decoder": reading.state}
        )
        return DecoderStep(features, after, reading.weights[:, :, 0])

    def _parallel(
        self, input_gates: Float[Tensor, "step batch gates"], encoded: Encoded
    ) -> DecoderOutput:
        states = self.stack.initial(encoded.summary)
        hidden = self.stack.forward_sequence(input_gates, states).transpose(0, 1)
        reading = self.attention(hidden, encoded.values, encoded.values, mask=encoded.mask)
        features = torch.tanh(self.from_context(reading.context) + self.from_state(hidden))
        return DecoderOutput(self.dropout(features), {"decoder": AttentionRecords([reading])})

    def _stepwise(
        self, input_gates: Float[Tensor, "step batch gates"], encoded: Encoded, feed: DeferredLinear
    ) -> DecoderOutput:
        memory = self.attention.prepare(encoded.values, encoded.values, encoded.mask)
        from_context = DeferredLinear(self.from_context)
        from_state = DeferredLinear(self.from_state)
        steps, states = self.stack.steps(), self.stack.initial(encoded.summary)
        attention_state, features, readings = None, [], []
        last = input_gates.new_zeros(input_gates.shape[1], self.size)
        with deferred_gradients():
            for gates in input_gates.unbind(0):
                states = steps(gates + feed(last), states)
                hidden = states[-1][0]
                reading = self.attention.read(hidden[:, None], memory, state=attention_state)
                attention_state = reading.state
                combined = from_context(reading.context[:, 0]) + from_state(hidden)
                last = self.dropout(torch.tanh(combined))
                features.append(last)
                readings.append(reading)
        return DecoderOutput(torch.stack(features, 1), {"decoder": AttentionRecords(readings)})
