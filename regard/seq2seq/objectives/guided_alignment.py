"""Guided alignment: attention weights are trained towards given alignments."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.core.errors import ShapeError
from regard.seq2seq.batch import SourceTarget
from regard.seq2seq.decoders.attention_maps import attention_maps, choose_map
from regard.seq2seq.objectives.base import Output
from regard.seq2seq.protocols import Loss, LossTerm


def guided_alignment_loss(
    weights: Float[Tensor, "batch target source"], links: Float[Tensor, "batch rows columns"]
) -> Float[Tensor, ""]:
    """−Σ links · log weights over the linked tokens (Chen 2016, eq. 8; Garg 2019, section 4.3).

    Args:
        weights: A row for each target token, EOS included and BOS not.
        links: Of the same shape; rows sum to 1, or to 0 where nothing is linked.
    """
    if links.shape != weights.shape:
        raise ShapeError(
            f"links have shape {tuple(links.shape)} but the weights {tuple(weights.shape)}. Give a "
            "row for each target token, EOS included and BOS not, and a column for each of the "
            "source."
        )
    linked = links.sum(-1) > 0
    # The gradient of a logarithm near 0 would dominate all others.
    smallest = torch.finfo(weights.dtype).eps
    return -(links[linked] * weights[linked].clamp(min=smallest).log()).sum()


@dataclass(frozen=True)
class GuidedAlignmentObjective:
    """The guided alignment loss, where a batch has links.

    Args:
        weight: Its weight relative to the cross-entropy.
        layer: The layer or head that is guided, as in `choose_map`.
    """

    weight: float = 1.0
    layer: str = ""
    name = "links"
    needs_attention = True

    def __call__(self, output: Output, batch: SourceTarget) -> Loss:
        if batch.links is None:
            return {}
        weights = choose_map(attention_maps(output.decoded), self.layer)
        total = guided_alignment_loss(weights, batch.links)
        return {self.name: LossTerm(total, batch.counts()["links"], self.weight)}
