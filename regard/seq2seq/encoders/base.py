"""What an encoder is, and what its parts have in common."""

from typing import Protocol, TypeVar, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.masks import Lengths
from regard.seq2seq.batch import Span
from regard.seq2seq.protocols import Encoded

Source_contra = TypeVar("Source_contra", contravariant=True)


@runtime_checkable
class Encoder(Protocol[Source_contra]):
    """A source (tokens, frames, patches) to the vectors that attention reads.

    What the padding contains never matters.
    """

    out_size: int
    """Size of those vectors."""

    def __call__(self, source: Source_contra) -> Encoded: ...


@runtime_checkable
class EncoderBody(Protocol):
    """An encoder without its front end: vectors in, vectors out, whatever made them.

    A front end (embedding, character CNN, convolutional subsampling, patches) and a body make an
    encoder.
    """

    out_size: int

    def __call__(
        self,
        vectors: Float[Tensor, "batch length size"],
        lengths: Int[Tensor, " batch"],
        places: list[list[Span]] | None = None,
    ) -> Encoded:
        """Vectors padded at the end, and where each lies for people, if anyone asked."""


@runtime_checkable
class HasEmbedding(Protocol):
    """Whatever looks tokens up in a table, which may be tied to another's."""

    embedding: nn.Embedding


def zero_padding(
    values: Float[Tensor, "batch length size"], lengths: Int[Tensor, " batch"]
) -> Float[Tensor, "batch length size"]:
    """The values, with zeros in the padding."""
    return values.masked_fill(~Lengths(lengths).dense(1, values.shape[1]).mT, 0.0)
