"""Readings by name: "decoder.2", its head "decoder.2/head.1", and either a token later, "+1"."""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.core.errors import OptionError
from regard.seq2seq.decoders import DecoderOutput

Weights = Float[Tensor, "batch target source"]

LATER = "+1"
"""At the end of a layer's name: its reading a token later, when the token itself has become what
asks. In the lower layers of a Transformer that is where a token looks for its like (Chen 2020)."""


def attention_maps(whole: DecoderOutput) -> dict[str, Weights]:
    """What a decoder read: "decoder", as its steps show it, and each head where there are heads."""
    shown = whole.weights()
    found = {} if shown is None else {"decoder": shown}
    for name, readings in whole.readings.items():
        if readings.weights.ndim > 3:
            heads = enumerate(readings.weights.unbind(1))
            found |= {f"{name}/head.{number}": own for number, own in heads}
    return found


def choose_map(readings: Mapping[str, Weights], layer: str = "") -> Weights:
    """Row t is what token t, `BEGIN` not counted, reads: in a head, or the mean of a layer's.

    Args:
        readings: As `by_name` gives them.
        layer: "decoder.2", "decoder.2/head.1", "decoder.0+1"; if empty, the layer before the last,
            where words look for their like (Garg 2019), or the only one.
    """
    name, later = layer.removesuffix(LATER), layer.endswith(LATER)
    known = list(dict.fromkeys(each.split("/")[0] for each in readings if "/" in each))
    name = name or (known[max(0, len(known) - 2)] if known else "decoder")
    heads = [own for each, own in readings.items() if each.startswith(f"{name}/head.")]
    if name in readings:
        heads = [readings[name]]
    if not heads:
        raise OptionError(f"the model has no layer {name}. It has {', '.join(known or readings)}.")
    found = heads[0] if len(heads) == 1 else torch.stack(heads).mean(0)
    # The first row comes round to `END`, which nobody looks at.
    return found.roll(-1, 1) if later else found
