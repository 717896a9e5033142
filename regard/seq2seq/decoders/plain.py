"""A decoder without attention: all it knows of the source is one vector."""

from jaxtyping import Int
from torch import Tensor, nn

from regard.attention.options import whole
from regard.seq2seq.cells import CellName
from regard.seq2seq.decoders.base import Carried, Stepped, Whole
from regard.seq2seq.decoders.stack import Stack
from regard.seq2seq.dropout import Dropout
from regard.seq2seq.embeddings import embedding as table
from regard.seq2seq.seams import Encoded


class Plain(nn.Module):
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

    reads = False

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
        self.stack = Stack(cell, embedding, size, whole("layers", layers, 1), dropout)
        self.begin = self.stack.beginning(source_size)
        self.summary = nn.Linear(source_size, self.stack.gates, bias=False)
        self.dropout = Dropout(dropout)

    def whole(self, inputs: Int[Tensor, "batch target"], encoded: Encoded) -> Whole:
        vectors = self.dropout(self.embedding(inputs.mT))
        parts = self.stack.project(vectors) + self.summary(encoded.summary)
        states = self.stack.whole(parts, self.begin(encoded.summary))
        return Whole(self.dropout(states.transpose(0, 1)))

    def start(self, encoded: Encoded, width: int) -> Carried:
        states = self.begin(encoded.summary[:, None].expand(-1, width, -1))
        return Carried(
            self.stack.named(states), {"summary": self.summary(encoded.summary)[:, None]}
        )

    def step(self, tokens: Int[Tensor, "sentence beam"], state: Carried) -> Stepped:
        parts = self.stack.project(self.embedding(tokens)) + state.beside["summary"]
        states = self.stack.steps()(parts, self.stack.unnamed(state.moving))
        after = Carried(self.stack.named(states), state.beside)
        return Stepped(states[-1][0], after)
