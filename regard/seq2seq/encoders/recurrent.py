"""A recurrent encoder, unidirectional or bidirectional."""

from typing import TypedDict, Unpack

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.core.options import check_int
from regard.seq2seq.batch import Span, Tokens
from regard.seq2seq.nn.dropout import Dropout
from regard.seq2seq.nn.embeddings import build_embedding
from regard.seq2seq.nn.module_list import TypedModuleList
from regard.seq2seq.nn.packing import Packing
from regard.seq2seq.nn.rnn import RNNLayer
from regard.seq2seq.nn.rnn_cells import CellName
from regard.seq2seq.protocols import Encoded


class RecurrentOptions(TypedDict, total=False):
    """The options of a `RecurrentBody`."""

    cell: CellName
    layers: int
    bidirectional: bool
    dropout: float
    reverse: bool


class RecurrentEncoder(nn.Module):
    """Token embeddings through a `RecurrentBody` (Bahdanau 2015, section 3.2).

    Args:
        vocab_size: Size of the vocabulary.
        embedding_size: Size of an embedding.
        size: Size of the hidden state in each direction.
        **options: Of the body.
    """

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        size: int,
        **options: Unpack[RecurrentOptions],
    ) -> None:
        super().__init__()
        self.embedding = build_embedding(vocab_size, embedding_size)
        self.body = RecurrentBody(embedding_size, size, **options)
        self.out_size = self.body.out_size

    def forward(self, source: Tokens) -> Encoded:
        packing = Packing(source.lengths, source.ids.shape[1])
        # Ids are packed, not vectors: padding is not looked up, and gradients sum in this order.
        vectors = self.embedding(packing.pack(source.ids))
        return self.body.forward_packed(vectors, packing, source.spans)


class RecurrentBody(nn.Module):
    """Stacked recurrent layers over vectors. The summary is the last state of each direction.

    Args:
        in_size: Size of the vectors.
        size: Size of the hidden state in each direction.
        cell: "gru" or "lstm".
        layers: How many layers; each reads all directions of the one below.
        bidirectional: Also run from the end to the start?
        dropout: Dropout rate on the input of each layer.
        reverse: Run from the end first (Sutskever 2014, section 3.3); positions stay as they are.
    """

    def __init__(
        self,
        in_size: int,
        size: int,
        *,
        cell: CellName = "gru",
        layers: int = 1,
        bidirectional: bool = True,
        dropout: float = 0.0,
        reverse: bool = False,
    ) -> None:
        super().__init__()
        self.reversed = (reverse, not reverse) if bidirectional else (reverse,)
        self.out_size = size * len(self.reversed)
        self.dropout = Dropout(dropout)
        sizes = [in_size] + [self.out_size] * (check_int("layers", layers, 1) - 1)
        self.layers = TypedModuleList(
            RNNLayer(cell, layer_in, size, len(self.reversed)) for layer_in in sizes
        )

    def forward(
        self,
        vectors: Float[Tensor, "batch length in"],
        lengths: Int[Tensor, " batch"],
        places: list[list[Span]] | None = None,
    ) -> Encoded:
        """Padded vectors."""
        packing = Packing(lengths, vectors.shape[1])
        return self.forward_packed(packing.pack(vectors), packing, places)

    def forward_packed(
        self,
        vectors: Float[Tensor, "row in"],
        packing: Packing,
        places: list[list[Span]] | None = None,
    ) -> Encoded:
        """Packed vectors."""
        batch, final = len(packing.lengths), list[Tensor]()
        for layer in self.layers:
            vectors, final, outputs = self.dropout(vectors), [], []
            for direction, is_reversed in enumerate(self.reversed):
                inputs = packing.reverse(vectors) if is_reversed else vectors
                hidden, last = layer.run_direction(inputs, packing.batch_sizes, batch, direction)
                outputs.append(packing.reverse(hidden) if is_reversed else hidden)
                final.append(last)
            vectors = torch.cat(outputs, -1)
        summary = torch.cat(final, -1)[packing.unsorted_indices]
        return Encoded(packing.pad(vectors), packing.lengths, summary, places or [])
