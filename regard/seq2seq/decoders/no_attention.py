"""A decoder without attention: one vector is all it has of the source."""

from jaxtyping import Int
from torch import Tensor, nn

from regard.attention.core.options import check_int
from regard.seq2seq.decoders.base import DecoderOutput, DecoderState, DecoderStep
from regard.seq2seq.decoders.rnn_stack import RNNStack
from regard.seq2seq.nn.dropout import Dropout
from regard.seq2seq.nn.embeddings import build_embedding
from regard.seq2seq.nn.rnn_cells import CellName
from regard.seq2seq.protocols import Encoded


class NoAttentionDecoder(nn.Module):
    """It starts from the source's summary (Sutskever 2014) and reads it at each step (Cho 2014).

    Args:
        vocab_size: Size of the vocabulary.
        embedding_size: Size of an embedding.
        size: Size of the state, and of the features.
        source_size: Size of the summary.
        cell: "gru" or "lstm".
        layers: How many layers.
        dropout: Dropout rate on the embeddings, between layers and on the features.
    """

    has_attention = False

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        size: int,
        source_size: int,
        *,
        cell: CellName = "gru",
        layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.size = size
        self.embedding = build_embedding(vocab_size, embedding_size)
        layers = check_int("layers", layers, 1)
        self.stack = RNNStack(
            cell, embedding_size, size, source_size, layers=layers, dropout=dropout
        )
        self.summary = nn.Linear(source_size, self.stack.gates, bias=False)
        self.dropout = Dropout(dropout)

    def forward(self, inputs: Int[Tensor, "batch target"], encoded: Encoded) -> DecoderOutput:
        vectors = self.dropout(self.embedding(inputs.mT))
        input_gates = self.stack.project(vectors) + self.summary(encoded.summary)
        states = self.stack.initial(encoded.summary)
        hidden = self.stack.forward_sequence(input_gates, states)
        return DecoderOutput(self.dropout(hidden.transpose(0, 1)))

    def start(self, encoded: Encoded, width: int) -> DecoderState:
        return DecoderState(
            self.stack.start(encoded.summary, width),
            {"summary": self.summary(encoded.summary)[:, None]},
        )

    def step(self, tokens: Int[Tensor, "sentence beam"], state: DecoderState) -> DecoderStep:
        input_gates = self.stack.project(self.embedding(tokens)) + state.per_sentence["summary"]
        states = self.stack.steps()(input_gates, self.stack.unflatten(state.per_beam))
        after = DecoderState(self.stack.flatten(states), state.per_sentence)
        return DecoderStep(states[-1][0], after)
