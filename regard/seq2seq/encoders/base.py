"""What an encoder is."""

from typing import Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.masks import Lengths
from regard.seq2seq.batch import Tokens
from regard.seq2seq.protocols import Encoded


@runtime_checkable
class Encoder(Protocol):
    """Tokens to what is known of them. What stands in the padding never matters."""

    out_size: int
    """Size of what is known of a token."""

    embedding: nn.Embedding

    def __call__(self, tokens: Tokens) -> Encoded: ...


def hidden(lengths: Int[Tensor, " batch"], length: int) -> Bool[Tensor, "batch length 1"]:
    """Which places are padding."""
    return ~Lengths(lengths).dense(1, length).mT


def without_padding(
    values: Float[Tensor, "batch length size"], lengths: Int[Tensor, " batch"]
) -> Float[Tensor, "batch length size"]:
    """The same, with zeros where padding is."""
    return values.masked_fill(hidden(lengths, values.shape[1]), 0.0)
