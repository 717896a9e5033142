"""Output layers: from a decoder's features to log-probabilities of tokens."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.core.errors import ShapeError
from regard.seq2seq.nn.linear_cross_entropy import linear_cross_entropy, log_softmax
from regard.seq2seq.nn.transposed_linear import plain_linear


@dataclass(slots=True)
class CopyInputs:
    """What an output layer that copies needs beside the features, a row for each of them."""

    weights: Float[Tensor, "*row source"]
    """Attention weights."""

    copy_ids: Int[Tensor, "*#row source"]
    """Each source token as a target id."""

    extra_vocab: int
    """How many ids there are past the vocabulary."""


@runtime_checkable
class OutputLayer(Protocol):
    """Features to log-probabilities of tokens."""

    vocab_size: int

    copies: bool
    """Does it need `CopyInputs`?"""

    def loss(
        self,
        features: Float[Tensor, "row size"],
        targets: Int[Tensor, " row"],
        smoothing: float,
        copy_inputs: CopyInputs | None,
    ) -> tuple[Float[Tensor, ""], Float[Tensor, " row"]]:
        """The sum of the cross-entropy, with label smoothing, and each target's log-probability.

        The latter have no gradient.
        """

    def log_probs(
        self, features: Float[Tensor, "*row size"], copy_inputs: CopyInputs | None
    ) -> Float[Tensor, "*row token"]:
        """Of each token."""


class LinearOutput(nn.Module):
    """p(token) = softmax(W f + b).

    Args:
        size: Size of the features.
        vocab_size: Size of the vocabulary.
        tied: Take this embedding's weight for W (Press 2017); its vectors have the features' size.
    """

    copies = False

    def __init__(self, size: int, vocab_size: int, *, tied: nn.Embedding | None = None) -> None:
        super().__init__()
        self.vocab_size = vocab_size
        self.linear = nn.Linear(size, vocab_size)
        nn.init.zeros_(self.linear.bias)
        if tied is None:
            nn.init.normal_(self.linear.weight, std=size**-0.5)
            return
        if tied.weight.shape != self.linear.weight.shape:
            raise ShapeError(
                f"an embedding of {tuple(tied.weight.shape)} cannot be tied to an output layer for "
                f"{vocab_size} tokens and features of size {size}. Give both the same sizes, or "
                "do not tie them."
            )
        self.linear.weight = tied.weight

    def loss(
        self,
        features: Float[Tensor, "row size"],
        targets: Int[Tensor, " row"],
        smoothing: float = 0.0,
        copy_inputs: CopyInputs | None = None,
    ) -> tuple[Float[Tensor, ""], Float[Tensor, " row"]]:
        return linear_cross_entropy(
            features, self.linear.weight, self.linear.bias, targets, smoothing
        )

    def log_probs(
        self, features: Float[Tensor, "*row size"], copy_inputs: CopyInputs | None = None
    ) -> Float[Tensor, "*row token"]:
        if type(self.linear) is nn.Linear:
            return log_softmax(plain_linear(features, self.linear.weight), self.linear.bias)
        return log_softmax(self.linear(features))  # quantised, say
