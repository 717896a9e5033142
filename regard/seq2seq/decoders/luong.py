"""Context after the state: go on first, then read."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.attend import Attention
from regard.attention.kernels import loop
from regard.attention.options import whole
from regard.seq2seq.cells import CellName
from regard.seq2seq.decoders.base import Carried, Readings, Stepped, Whole, source_memory
from regard.seq2seq.decoders.stack import Stack
from regard.seq2seq.dropout import Dropout
from regard.seq2seq.embeddings import embedding as table
from regard.seq2seq.hoisted import Hoisted
from regard.seq2seq.seams import Encoded


class Luong(nn.Module):
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

    reads = True

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
        self.stack = Stack(cell, embedding, size, whole("layers", layers, 1), dropout)
        self.begin = self.stack.beginning(source_size)
        self.feed = nn.Linear(size, self.stack.gates, bias=False) if feeding else None
        self.from_context = nn.Linear(source_size, size, bias=False)
        self.from_state = nn.Linear(size, size, bias=False)
        self.dropout = Dropout(dropout)

    def whole(self, inputs: Int[Tensor, "batch target"], encoded: Encoded) -> Whole:
        parts = self.stack.project(self.dropout(self.embedding(inputs.mT)))
        if self.feed is None:
            return self._at_once(parts, encoded)
        return self._fed(parts, encoded, Hoisted(self.feed))

    def start(self, encoded: Encoded, width: int) -> Carried:
        states = self.begin(encoded.summary[:, None].expand(-1, width, -1))
        moving = self.stack.named(states)
        if self.feed is not None:
            moving["features"] = encoded.values.new_zeros(len(encoded.values), width, self.size)
        return Carried(moving, source=[source_memory(self.attention, encoded)])

    def step(self, tokens: Int[Tensor, "sentence beam"], state: Carried) -> Stepped:
        parts = self.stack.project(self.embedding(tokens))
        if self.feed is not None:
            parts = parts + self.feed(state.moving["features"])
        states = self.stack.steps()(parts, self.stack.unnamed(state.moving))
        hidden = states[-1][0]
        reading = self.attention.read(
            hidden[:, :, None], state.source[0], state=state.traces.get("decoder")
        )
        context = reading.context[:, :, 0]
        features = torch.tanh(self.from_context(context) + self.from_state(hidden))
        moving = self.stack.named(states)
        if self.feed is not None:
            moving["features"] = features
        after = Carried(moving, source=state.source, traces={"decoder": reading.state})
        return Stepped(features, after, reading.weights[:, :, 0])

    def _at_once(self, parts: Float[Tensor, "step batch gates"], encoded: Encoded) -> Whole:
        hidden = self.stack.whole(parts, self.begin(encoded.summary)).transpose(0, 1)
        reading = self.attention(hidden, encoded.values, encoded.values, mask=encoded.mask)
        features = torch.tanh(self.from_context(reading.context) + self.from_state(hidden))
        return Whole(self.dropout(features), {"decoder": Readings([reading])})

    def _fed(
        self, parts: Float[Tensor, "step batch gates"], encoded: Encoded, feed: Hoisted
    ) -> Whole:
        memory = self.attention.prepare(encoded.values, encoded.values, encoded.mask)
        from_context, from_state = Hoisted(self.from_context), Hoisted(self.from_state)
        steps, states, trace = self.stack.steps(), self.begin(encoded.summary), None
        fed, features, readings = parts.new_zeros(parts.shape[1], self.size), [], []
        with loop():
            for own in parts.unbind(0):
                states = steps(own + feed(fed), states)
                hidden = states[-1][0]
                reading = self.attention.read(hidden[:, None], memory, state=trace)
                trace = reading.state
                seen = torch.tanh(from_context(reading.context[:, 0]) + from_state(hidden))
                fed = self.dropout(seen)
                features.append(fed)
                readings.append(reading)
        return Whole(torch.stack(features, 1), {"decoder": Readings(readings)})
