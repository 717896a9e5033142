"""A Transformer encoder: every position attends to all others."""

from typing import Required, TypedDict, Unpack

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.core.options import check_int
from regard.attention.masks import Lengths
from regard.seq2seq.batch import Span, Tokens
from regard.seq2seq.encoders import fused_encoder
from regard.seq2seq.encoders.base import zero_padding
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


class TransformerOptions(TypedDict, total=False):
    """The options of a `TransformerBody`."""

    layers: Required[int]
    heads: Required[int]
    inner: Required[int]
    dropout: float
    norm: Norm


class TransformerEncoder(nn.Module):
    """Token embeddings with positions through a `TransformerBody` (Vaswani 2017, section 3.1).

    Args:
        vocab_size: Size of the vocabulary.
        size: Size of an embedding and of every layer.
        make: Builds the attention of one head, for vectors of `size // heads`.
        **options: Of the body.
    """

    def __init__(
        self,
        vocab_size: int,
        size: int,
        make: AttentionFactory,
        **options: Unpack[TransformerOptions],
    ) -> None:
        super().__init__()
        self.out_size = size
        self.embedding = build_embedding(vocab_size, size)
        self.positions = PositionalEncoding(options.get("dropout", 0.0))
        self.body = TransformerBody(size, make, **options)

    def forward(self, source: Tokens) -> Encoded:
        vectors = self.positions(self.embedding(source.ids))
        return self.body(vectors, source.lengths, source.spans)


class TransformerBody(nn.Module):
    """Self-attention layers, by any score, over vectors that know their positions.

    The summary is the mean over the sequence.

    Args:
        size: Size of the vectors and of every layer.
        make: Builds the attention of one head, for vectors of `size // heads`.
        layers: How many layers.
        heads: How many heads each attention has.
        inner: Hidden size of the feed-forward network.
        dropout: Dropout rate.
        norm: Layer norm before each sublayer, "pre", or after it, "post".
    """

    def __init__(
        self,
        size: int,
        make: AttentionFactory,
        *,
        layers: int,
        heads: int,
        inner: int,
        dropout: float = 0.0,
        norm: Norm = "pre",
    ) -> None:
        super().__init__()
        self.out_size = size
        self.layers = TypedModuleList(
            _EncoderLayer(size, make, heads, inner, dropout, norm)
            for _ in range(check_int("layers", layers, 1))
        )
        self.norm = final_norm(size, norm)

    def forward(
        self,
        vectors: Float[Tensor, "batch length size"],
        lengths: Int[Tensor, " batch"],
        places: list[list[Span]] | None = None,
    ) -> Encoded:
        layers = list(self.layers)
        if fused_encoder.is_supported(layers, vectors):
            hidden = fused_encoder.encode(vectors, lengths, layers, self.norm)
        else:
            hidden, mask = vectors, Lengths(lengths)
            for layer in layers:
                hidden = layer(hidden, mask)
            hidden = self.norm(hidden)
        values = zero_padding(hidden, lengths)
        summary = values.sum(1) / lengths.clamp(min=1)[:, None]
        return Encoded(values, lengths, summary, places or [])


class _EncoderLayer(nn.Module):
    def __init__(
        self, size: int, make: AttentionFactory, heads: int, inner: int, dropout: float, norm: Norm
    ) -> None:
        super().__init__()
        self.self_attention = build_attention(make, heads, size, size)
        self.feed_forward = feed_forward(size, inner, dropout)
        self.self_residual, self.ffn_residual = (Residual(size, dropout, norm) for _ in range(2))

    def forward(
        self, hidden: Float[Tensor, "batch length size"], mask: Lengths
    ) -> Float[Tensor, "batch length size"]:
        inputs = self.self_residual.before(hidden)
        context = self.self_attention(inputs, inputs, inputs, mask=mask).context
        hidden = self.self_residual.after(hidden, context)
        return self.ffn_residual(hidden, self.feed_forward)
