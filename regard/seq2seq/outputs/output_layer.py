"""From features to how likely each token is."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.core.errors import ShapeError
from regard.seq2seq.nn.linear_cross_entropy import linear_cross_entropy, log_softmax
from regard.seq2seq.nn.transposed_linear import plain_linear


@dataclass(slots=True)
class CopyInputs:
    """What a readout may need beside the features, a row for each of them."""

    weights: Float[Tensor, "*row source"]
    """What was read."""

    copy_ids: Int[Tensor, "*#row source"]
    """Each source token as an id of the target."""

    extra_vocab: int
    """How many ids there are past the vocabulary."""


@runtime_checkable
class OutputLayer(Protocol):
    """A readout: features to tokens."""

    vocabulary: int

    copies: bool
    """Does it need what stands aside?"""

    def loss(
        self,
        features: Float[Tensor, "row size"],
        targets: Int[Tensor, " row"],
        smoothing: float,
        aside: CopyInputs | None,
    ) -> tuple[Float[Tensor, ""], Float[Tensor, " row"]]:
        """The sum of the smoothed loss, and each target's log-probability, without a gradient."""

    def log_probs(
        self, features: Float[Tensor, "*row size"], aside: CopyInputs | None
    ) -> Float[Tensor, "*row token"]:
        """Of each token."""


class LinearOutput(nn.Module):
    """p(token) = softmax(W f + b).

    Args:
        size: Size of the features.
        vocabulary: How many tokens there are.
        tied: Take this embedding's vectors for W (Press 2017); they have the features' size.
    """

    copies = False

    def __init__(self, size: int, vocabulary: int, *, tied: nn.Embedding | None = None) -> None:
        super().__init__()
        self.vocabulary = vocabulary
        self.linear = nn.Linear(size, vocabulary)
        nn.init.zeros_(self.linear.bias)
        if tied is None:
            nn.init.normal_(self.linear.weight, std=size**-0.5)
            return
        if tied.weight.shape != self.linear.weight.shape:
            raise ShapeError(
                f"an embedding of {tuple(tied.weight.shape)} cannot serve {vocabulary} tokens with "
                f"features of size {size}. Give both the same sizes, or do not tie them."
            )
        self.linear.weight = tied.weight

    def loss(
        self,
        features: Float[Tensor, "row size"],
        targets: Int[Tensor, " row"],
        smoothing: float = 0.0,
        aside: CopyInputs | None = None,
    ) -> tuple[Float[Tensor, ""], Float[Tensor, " row"]]:
        return linear_cross_entropy(
            features, self.linear.weight, self.linear.bias, targets, smoothing
        )

    def log_probs(
        self, features: Float[Tensor, "*row size"], aside: CopyInputs | None = None
    ) -> Float[Tensor, "*row token"]:
        if type(self.linear) is nn.Linear:
            return log_softmax(plain_linear(features, self.linear.weight), self.linear.bias)
        return log_softmax(self.linear(features))  # quantised, say
