"""The `Objective` protocol: loss terms from a model's output for a batch."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Bool, Float
from torch import Tensor

from regard.seq2seq.batch import SourceTarget
from regard.seq2seq.decoders import DecoderOutput
from regard.seq2seq.protocols import Encoded, Loss


@dataclass(slots=True)
class Output:
    """The output of an encoder–decoder for a batch with targets."""

    encoded: Encoded
    decoded: DecoderOutput
    real: Bool[Tensor, "batch target"]
    """Mask of target positions that are not padding; a row of `log_probs` for each."""

    log_probs: Float[Tensor, " row"]
    """Of each target token, without a gradient."""

    training: bool

    @property
    def weights(self) -> Float[Tensor, "batch target source"]:
        """The decoder's attention weights."""
        weights = self.decoded.weights()
        assert weights is not None, "checked when the model was built"
        return weights


@runtime_checkable
class Objective(Protocol):
    """Adds terms to a loss: none, one or several, by name.

    One with parameters is an `nn.Module`; the model then holds it under its `name`.
    """

    name: str

    needs_attention: bool
    """Does it need attention weights, so that a decoder without attention cannot have it?"""

    def __call__(self, output: Output, batch: SourceTarget) -> Loss: ...
