"""What the layers of a Transformer encoder and of a decoder have in common."""

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
    """Scaled embeddings plus sinusoids (Vaswani 2017, sections 3.4 and 3.5)."""

    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)

    def forward(
        self, vectors: Float[Tensor, "*batch length size"], first: int = 0
    ) -> Float[Tensor, "*batch length size"]:
        """Of these vectors the first has the position `first`."""
        length, size = vectors.shape[-2:]
        positions = torch.arange(first, first + length, device=vectors.device)
        return self.dropout(vectors * size**0.5 + sinusoids(positions, size, vectors.dtype))


class Residual(nn.Module):
    """A residual connection: a sublayer's output is added to its input, with a layer norm.

    The norm is before the sublayer ("pre") or after the sum ("post"). For a sublayer that returns
    more than its output there are the two halves:
    `x = residual.after(x, sublayer(residual.before(x)))`.
    """

    def __init__(self, size: int, dropout: float, norm: Norm) -> None:
        super().__init__()
        if norm not in get_args(Norm):
            raise OptionError(f'norm is {norm!r}. Choose "pre" or "post".')
        self.pre_norm = norm == "pre"
        self.norm, self.dropout = nn.LayerNorm(size), Dropout(dropout)

    def forward(self, inputs: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Both halves around a sublayer."""
        return self.after(inputs, sublayer(self.before(inputs)))

    def before(self, inputs: Tensor) -> Tensor:
        """The sublayer's input."""
        return self.norm(inputs) if self.pre_norm else inputs

    def after(self, inputs: Tensor, outputs: Tensor) -> Tensor:
        """The sum with the sublayer's output."""
        total = inputs + self.dropout(outputs)
        return total if self.pre_norm else self.norm(total)


def feed_forward(size: int, inner: int, dropout: float) -> nn.Sequential:
    """The position-wise feed-forward network (Vaswani 2017, section 3.3)."""
    into, out = nn.Linear(size, inner), nn.Linear(inner, size)
    for linear in (into, out):
        _initialise(linear)
    return nn.Sequential(into, nn.ReLU(), Dropout(dropout), out)


def final_norm(size: int, norm: Norm) -> nn.Module:
    """The norm after the last layer, if layers are pre-norm."""
    return nn.LayerNorm(size) if norm == "pre" else nn.Identity()


def build_attention(make: AttentionFactory, heads: int, size: int, source_size: int) -> MultiHead:
    """A layer's multi-head attention, with vectors of `size // heads` in each head."""
    if heads < 1 or size % heads:
        raise OptionError(
            f"a size of {size} cannot be split among {heads} heads. Give a size that is a multiple."
        )
    multihead = MultiHead(make, heads, size, source_size, size // heads)
    for linear in (multihead.query, multihead.key, multihead.value, multihead.out):
        _initialise(linear)
    select = multihead.attention.select
    if isinstance(select, Hard) and select.gradient == "reinforce":
        raise OptionError(
            "a Transformer cannot learn by Hard(gradient='reinforce'): it would sample in every "
            "layer. Use Hard(gradient='gumbel'), or a recurrent decoder."
        )
    return multihead


def _initialise(linear: nn.Linear) -> None:
    nn.init.xavier_uniform_(linear.weight)
    nn.init.zeros_(linear.bias)
