"""An encoder in which every token reads all others."""

from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.core.options import check_int
from regard.attention.masks import Lengths
from regard.seq2seq.batch import Tokens
from regard.seq2seq.encoders import fused_encoder
from regard.seq2seq.encoders.base import without_padding
from regard.seq2seq.nn.embeddings import embedding
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


class TransformerEncoder(nn.Module):
    """Layers of attention to the sentence itself, by any score (Vaswani 2017, section 3.1).

    The summary is the mean over the sentence.

    Args:
        vocabulary: How many tokens there are.
        size: Size of a token's vector, in every layer.
        make: Builds the attention of one head, for vectors of `size // heads`.
        layers: How many layers.
        heads: How many heads each attention has.
        inner: Size of the space inside the part that looks at each token alone.
        dropout: What share goes missing in training.
        norm: Normalise before each part, "pre", or after it, "post".
    """

    def __init__(
        self,
        vocabulary: int,
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
        self.embedding = embedding(vocabulary, size)
        self.placed = PositionalEncoding(dropout)
        self.layers = TypedModuleList(
            _EncoderLayer(size, make, heads, inner, dropout, norm)
            for _ in range(check_int("layers", layers, 1))
        )
        self.norm = final_norm(size, norm)

    def forward(self, tokens: Tokens) -> Encoded:
        seen, layers = self.placed(self.embedding(tokens.ids)), list(self.layers)
        if fused_encoder.is_supported(layers, self.embedding, tokens.ids):
            seen = fused_encoder.encode(seen, tokens.lengths, layers, self.norm)
        else:
            mask = Lengths(tokens.lengths)
            for layer in layers:
                seen = layer(seen, mask)
            seen = self.norm(seen)
        values = without_padding(seen, tokens.lengths)
        summary = values.sum(1) / tokens.lengths.clamp(min=1)[:, None]
        return Encoded(values, tokens.lengths, summary, tokens.spans)


class _EncoderLayer(nn.Module):
    def __init__(
        self, size: int, make: AttentionFactory, heads: int, inner: int, dropout: float, norm: Norm
    ) -> None:
        super().__init__()
        self.self_attention = build_attention(make, heads, size, size)
        self.feed_forward = feed_forward(size, inner, dropout)
        self.self_residual, self.ffn_residual = (Residual(size, dropout, norm) for _ in range(2))

    def forward(
        self, seen: Float[Tensor, "batch length size"], mask: Lengths
    ) -> Float[Tensor, "batch length size"]:
        asking = self.self_residual.before(seen)
        seen = self.self_residual.after(
            seen, self.self_attention(asking, asking, asking, mask=mask).context
        )
        return self.ffn_residual.after(seen, self.feed_forward(self.ffn_residual.before(seen)))
