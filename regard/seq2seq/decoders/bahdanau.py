"""Attention before the recurrent step: the last state is the query."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.attend import Attention
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
from regard.seq2seq.nn.transposed_linear import apply_linear
from regard.seq2seq.protocols import Encoded


class BahdanauDecoder(nn.Module):
    """The last state reads a context, which is an input of the next (Bahdanau 2015, A.2).

    The features are tanh(W [state; context; embedding]), the paper's deep output with tanh in the
    place of maxout.

    Args:
        vocab_size: Size of the vocabulary.
        embedding_size: Size of an embedding.
        size: Size of the state, which is the query, and of the features.
        source_size: Size of an encoded source position.
        attention: Any score and selection, for queries of `size` and keys of `source_size`.
        cell: "gru" or "lstm".
        dropout: Dropout rate on the embeddings and on the features.
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
        cell: CellName = "gru",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.size = size
        self.embedding = build_embedding(vocab_size, embedding_size)
        self.attention = attention
        self.stack = RNNStack(cell, embedding_size, size, source_size)
        self.context = nn.Linear(source_size, self.stack.gates, bias=False)
        self.out = nn.Linear(size + source_size + embedding_size, size)
        self.dropout = Dropout(dropout)

    def forward(self, inputs: Int[Tensor, "batch target"], encoded: Encoded) -> DecoderOutput:
        memory = self.attention.prepare(encoded.values, encoded.values, encoded.mask)
        vectors = self.dropout(self.embedding(inputs.mT))
        steps, context_gates = self.stack.steps(), DeferredLinear(self.context)
        states, attention_state = self.stack.initial(encoded.summary), None
        hidden, contexts, readings = [], [], []
        with deferred_gradients():
            for input_gates in self.stack.project(vectors).unbind(0):
                query = states[0][0][:, None]
                reading = self.attention.read(query, memory, state=attention_state)
                context, attention_state = reading.context[:, 0], reading.state
                states = steps(input_gates + context_gates(context), states)
                hidden.append(states[0][0])
                contexts.append(context)
                readings.append(reading)
        features = self._features(torch.stack(hidden), torch.stack(contexts), vectors)
        return DecoderOutput(features.transpose(0, 1), {"decoder": AttentionRecords(readings)})

    def start(self, encoded: Encoded, width: int) -> DecoderState:
        return DecoderState(
            self.stack.start(encoded.summary, width),
            source=[source_memory(self.attention, encoded)],
        )

    def step(self, tokens: Int[Tensor, "sentence beam"], state: DecoderState) -> DecoderStep:
        states, vectors = self.stack.unflatten(state.per_beam), self.embedding(tokens)
        query = states[0][0][:, :, None]
        reading = self.attention.read(
            query, state.source[0], state=state.attention_states.get("decoder")
        )
        context = reading.context[:, :, 0]
        input_gates = self.stack.project(vectors) + apply_linear(context, self.context)
        states = self.stack.steps()(input_gates, states)
        after = DecoderState(
            self.stack.flatten(states),
            source=state.source,
            attention_states={"decoder": reading.state},
        )
        features = self._features(states[0][0], context, vectors)
        return DecoderStep(features, after, reading.weights[:, :, 0])

    def _features(
        self,
        hidden: Float[Tensor, "*batch size"],
        contexts: Float[Tensor, "*batch source_size"],
        vectors: Float[Tensor, "*batch embedding"],
    ) -> Float[Tensor, "*batch size"]:
        inputs = torch.cat([hidden, contexts, vectors], -1)
        return self.dropout(torch.tanh(apply_linear(inputs, self.out)))
