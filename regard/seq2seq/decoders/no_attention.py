"""A decoder without attention: all it knows of the source is one vector."""

from jaxtyping import Int
from torch import Tensor, nn

from regard.attention.core.options import check_int
from regard.seq2seq.decoders.base import DecoderOutput, DecoderState, DecoderStep
from regard.seq2seq.decoders.rnn_stack import RNNStack
from regard.seq2seq.nn.dropout import Dropout
from regard.seq2seq.nn.embeddings import embedding as table
from regard.seq2seq.nn.rnn_cells import CellName
from regard.seq2seq.protocols import Encoded


class NoAttentionDecoder(nn.Module):
    """It begins with the source's summary (Sutskever 2014) and sees it at each step (Cho 2014).

    Args:
        vocabulary: How many tokens there are.
        embedding: Size of a token's vector.
        size: Size of the state, and of the features.
        source_size: Size of the summary.
        cell: "gru" or "lstm".
        layers: How many layers.
        dropout: What share of the vectors, of the layers and of the features goes missing.
    """

    has_attention = False

    def __init__(
        self,
        vocabulary: int,
        embedding: int,
        size: int,
        source_size: int,
        *,
        cell: CellName = "gru",
        layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.size = size
        self.embedding = table(vocabulary, embedding)
        self.stack = RNNStack(cell, embedding, size, check_int("layers", layers, 1), dropout)
        self.begin = self.stack.beginning(source_size)
        self.summary = nn.Linear(source_size, self.stack.gates, bias=False)
        self.dropout = Dropout(dropout)

    def forward(self, inputs: Int[Tensor, "batch target"], encoded: Encoded) -> DecoderOutput:
        vectors = self.dropout(self.embedding(inputs.mT))
        parts = self.stack.project(vectors) + self.summary(encoded.summary)
        states = self.stack.forward_sequence(parts, self.begin(encoded.summary))
        return DecoderOutput(self.dropout(states.transpose(0, 1)))

    def start(self, encoded: Encoded, width: int) -> DecoderState:
        states = self.begin(encoded.summary[:, None].expand(-1, width, -1))
        return DecoderState(
            self.stack.flatten(states), {"summary": self.summary(encoded.summary)[:, None]}
        )

    def step(self, tokens: Int[Tensor, "sentence beam"], state: DecoderState) -> DecoderStep:
        parts = self.stack.project(self.embedding(tokens)) + state.per_sentence["summary"]
        states = self.stack.steps()(parts, self.stack.unflatten(state.per_beam))
        after = DecoderState(self.stack.flatten(states), state.per_sentence)
        return DecoderStep(states[-1][0], after)
