"""What the layers of a Transformer's encoder and of its decoder have in common."""

from collections.abc import Callable
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.attend import Attention
from regard.attention.core.errors import OptionError
from regard.attention.multihead import MultiHead
from regard.attention.selection import Hard
from regard.seq2seq.nn.dropout import Dropout
from regard.seq2seq.nn.embeddings import sinusoids

Norm = Literal["pre", "post"]
AttentionFactory = Callable[[], Attention]
"""Builds the attention of one head."""


class PositionalEncoding(nn.Module):
    """Vectors of tokens with their places (Vaswani 2017, sections 3.4 and 3.5)."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)

    def forward(
        self, vectors: Float[Tensor, "*batch length size"], first: int = 0
    ) -> Float[Tensor, "*batch length size"]:
        """Of these tokens the first stands at that place."""
        length, size = vectors.shape[-2:]
        places = torch.arange(first, first + length, device=vectors.device)
        return self.dropout(vectors * size**0.5 + sinusoids(places, size, vectors.dtype))


class Residual(nn.Module):
    """One part of a layer is added to what it was given, normalised before it or after the sum.

    Used in two halves, for a part that gives more than its result:
    `x = residual.after(x, part(residual.before(x)))`.
    """

    def __init__(self, size: int, dropout: float, norm: Norm) -> None:
        super().__init__()
        if norm not in get_args(Norm):
            raise OptionError(f'norm is {norm!r}. Choose "pre" or "post".')
        self.first = norm == "pre"
        self.norm, self.dropout = nn.LayerNorm(size), Dropout(dropout)

    def before(self, inputs: Tensor) -> Tensor:
        """What the part is given."""
        return self.norm(inputs) if self.first else inputs

    def after(self, inputs: Tensor, outputs: Tensor) -> Tensor:
        """What the next part is given."""
        total = inputs + self.dropout(outputs)
        return total if self.first else self.norm(total)


def feed_forward(size: int, inner: int, dropout: float) -> nn.Sequential:
    """The part of a layer that looks at each place alone (Vaswani 2017, section 3.3)."""
    into, out = nn.Linear(size, inner), nn.Linear(inner, size)
    for linear in (into, out):
        _initialise(linear)
    return nn.Sequential(into, nn.ReLU(), Dropout(dropout), out)


def final_norm(size: int, norm: Norm) -> nn.Module:
    """After the last layer, if the layers normalise before."""
    return nn.LayerNorm(size) if norm == "pre" else nn.Identity()


def build_attention(make: AttentionFactory, heads: int, size: int, source_size: int) -> MultiHead:
    """The attention of a layer, with vectors of `size // heads` in each head."""
    if heads < 1 or size % heads:
        raise OptionError(
            f"a size of {size} cannot be split among {heads} heads. Give a size that is a multiple."
        )
    made = MultiHead(make, heads, size, source_size, size // heads)
    for linear in (made.query, made.key, made.value, made.out):
        _initialise(linear)
    select = made.attention.select
    if isinstance(select, Hard) and select.gradient == "reinforce":
        raise OptionError(
            "a Transformer cannot learn by Hard(gradient='reinforce'): it would draw in every "
            "layer. Use Hard(gradient='gumbel'), or a recurrent decoder."
        )
    return made


def _initialise(linear: nn.Linear) -> None:
    nn.init.xavier_uniform_(linear.weight)
    nn.init.zeros_(linear.bias)
