"""Guided training: which reading is held to given alignments, and which row to which token."""

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from regard.attention.errors import OptionError, ShapeError
from regard.seq2seq.decoders import Whole
from regard.seq2seq.losses import guided

Weights = Float[Tensor, "batch target source"]


def links_loss(
    whole: Whole, links: Float[Tensor, "batch rows columns"], layer: str, delay: int
) -> Float[Tensor, ""]:
    """The cross-entropy between given alignments and what their tokens read (Garg 2019, 4.3).

    Args:
        whole: What a decoder made of the targets.
        links: A row for each target token, `END` included and `BEGIN` not; rows sum to 1 or 0.
        layer: Whose reading, as `followed` has it.
        delay: How many rows after the one that predicts a token is its reading.
    """
    weights = followed(whole, layer)
    if links.shape != weights.shape:
        raise ShapeError(
            f"links have shape {tuple(links.shape)} but the weights {tuple(weights.shape)}. Give a "
            "row for each target token, END included and BEGIN not, and a column for each of the "
            "source."
        )
    # A row that is padding, or that predicts the first token of a Transformer, has no link.
    moved = functional.pad(links, (0, 0, delay, 0))[:, : links.shape[1]]
    linked = moved.sum(-1) > 0
    return guided(weights[linked], moved[linked])


def followed(whole: Whole, layer: str = "") -> Weights:
    """The reading that is held to links: of a layer the mean of its heads, or one head.

    Args:
        whole: With readings.
        layer: "decoder.2" or "decoder.2/head.1"; if empty, the layer before the last.
    """
    names = list(whole.readings)
    name, _, head = (layer or names[max(0, len(names) - 2)]).partition("/head.")
    if name not in names:
        raise OptionError(f"the decoder has no layer {name}. It has {', '.join(names)}.")
    weights = whole.readings[name].weights
    if weights.ndim == 3:
        return weights
    if not head:
        return weights.mean(1)
    if not head.isdecimal() or int(head) >= weights.shape[1]:
        raise OptionError(f"{name} has no head {head}. It has {weights.shape[1]}, counted from 0.")
    return weights[:, int(head)]
