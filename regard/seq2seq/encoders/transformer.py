"""An encoder in which every token reads all others."""

from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.masks import Lengths
from regard.attention.options import whole
from regard.seq2seq.embeddings import embedding
from regard.seq2seq.encoders import quick
from regard.seq2seq.encoders.base import without_padding
from regard.seq2seq.examples import Tokens
from regard.seq2seq.layers import Layers
from regard.seq2seq.seams import Encoded
from regard.seq2seq.transformer_parts import (
    Make,
    Norm,
    Placed,
    Residual,
    forward_part,
    last_norm,
    reader,
)


class Transformer(nn.Module):
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
        make: Make,
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
        self.placed = Placed(dropout)
        self.layers = Layers(
            _Layer(size, make, heads, inner, dropout, norm)
            for _ in range(whole("layers", layers, 1))
        )
        self.norm = last_norm(size, norm)

    def forward(self, tokens: Tokens) -> Encoded:
        seen, layers = self.placed(self.embedding(tokens.ids)), list(self.layers)
        if quick.serves(layers, self.embedding, tokens.ids):
            seen = quick.encode(seen, tokens.lengths, layers, self.norm)
        else:
            mask = Lengths(tokens.lengths)
            for layer in layers:
                seen = layer(seen, mask)
            seen = self.norm(seen)
        values = without_padding(seen, tokens.lengths)
        summary = values.sum(1) / tokens.lengths.clamp(min=1)[:, None]
        return Encoded(values, tokens.lengths, summary, tokens.spans)


class _Layer(nn.Module):
    def __init__(
        self, size: int, make: Make, heads: int, inner: int, dropout: float, norm: Norm
    ) -> None:
        super().__init__()
        self.reader = reader(make, heads, size, size)
        self.forward_part = forward_part(size, inner, dropout)
        self.read, self.thought = (Residual(size, dropout, norm) for _ in range(2))

    def forward(
        self, seen: Float[Tensor, "batch length size"], mask: Lengths
    ) -> Float[Tensor, "batch length size"]:
        asking = self.read.before(seen)
        seen = self.read.after(seen, self.reader(asking, asking, asking, mask=mask).context)
        return self.thought.after(seen, self.forward_part(self.thought.before(seen)))
