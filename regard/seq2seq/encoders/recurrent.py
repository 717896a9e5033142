"""A recurrent encoder, in one direction or in both."""

import torch
from torch import Tensor, nn

from regard.attention.core.options import check_int
from regard.seq2seq.batch import Tokens
from regard.seq2seq.nn.dropout import Dropout
from regard.seq2seq.nn.embeddings import embedding as table
from regard.seq2seq.nn.module_list import TypedModuleList
from regard.seq2seq.nn.packed_sequence import PackedSequence
from regard.seq2seq.nn.rnn import RNNLayer
from regard.seq2seq.nn.rnn_cells import CellName
from regard.seq2seq.protocols import Encoded


class RecurrentEncoder(nn.Module):
    """What came before each token and, both ways, what comes after (Bahdanau 2015, section 3.2).

    The summary is the last state of each direction.

    Args:
        vocabulary: How many tokens there are.
        embedding: Size of a token's vector.
        size: Size of the state in each direction.
        cell: "gru" or "lstm".
        layers: How many layers; each sees both directions of the one below.
        both_ways: Read from the end, too?
        dropout: What share of the vectors' and of the layers' numbers goes missing in training.
        reverse: Read from the end first (Sutskever 2014, section 3.3); places stay as they are.
    """

    def __init__(
        self,
        vocabulary: int,
        embedding: int,
        size: int,
        *,
        cell: CellName = "gru",
        layers: int = 1,
        both_ways: bool = True,
        dropout: float = 0.0,
        reverse: bool = False,
    ) -> None:
        super().__init__()
        self.backwards = (reverse, not reverse) if both_ways else (reverse,)
        self.out_size = size * len(self.backwards)
        self.embedding = table(vocabulary, embedding)
        self.dropout = Dropout(dropout)
        sizes = [embedding] + [self.out_size] * (check_int("layers", layers, 1) - 1)
        self.layers = TypedModuleList(
            RNNLayer(cell, in_size, size, len(self.backwards)) for in_size in sizes
        )

    def forward(self, tokens: Tokens) -> Encoded:
        batch, length = tokens.ids.shape
        ragged = PackedSequence(tokens.lengths, length)
        seen, last = self.embedding(ragged.packed(tokens.ids)), list[Tensor]()
        for layer in self.layers:
            seen, last, outputs = self.dropout(seen), [], []
            for direction, back in enumerate(self.backwards):
                own = ragged.reversed(seen) if back else seen
                found, end = layer.run_direction(own, ragged.counts, batch, direction)
                outputs.append(ragged.reversed(found) if back else found)
                last.append(end)
            seen = torch.cat(outputs, -1)
        summary = torch.cat(last, -1)[ragged.ranks]
        return Encoded(ragged.padded(seen), tokens.lengths, summary, tokens.spans)
