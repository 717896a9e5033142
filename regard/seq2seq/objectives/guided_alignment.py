"""Guided training: a reading is held to given alignments."""

from jaxtyping import Float
from torch import Tensor

from regard.attention.core.errors import ShapeError
from regard.seq2seq.nn.linear_cross_entropy import alignment_loss


def guided_alignment_loss(
    weights: Float[Tensor, "batch target source"], links: Float[Tensor, "batch rows columns"]
) -> Float[Tensor, ""]:
    """The cross-entropy between given alignments and what their tokens read (Garg 2019, 4.3).

    Args:
        weights: A row for each target token, `END` included and `BEGIN` not.
        links: Of the same shape; rows sum to 1, or to 0 where nothing is given.
    """
    if links.shape != weights.shape:
        raise ShapeError(
            f"links have shape {tuple(links.shape)} but the weights {tuple(weights.shape)}. Give a "
            "row for each target token, END included and BEGIN not, and a column for each of the "
            "source."
        )
    linked = links.sum(-1) > 0
    return alignment_loss(weights[linked], links[linked])
