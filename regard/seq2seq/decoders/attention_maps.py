"""Attention maps by name: "decoder.2", its head "decoder.2/head.1", each one token later: "+1"."""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.core.errors import OptionError
from regard.seq2seq.decoders.base import DecoderOutput

AttentionWeights = Float[Tensor, "batch target source"]

LATER = "+1"
"""At the end of a layer's name: its weights one token later, when the token itself is the input. In
the lower layers of a Transformer those align best (Chen 2020)."""


def attention_maps(output: DecoderOutput) -> dict[str, AttentionWeights]:
    """A decoder's attention maps: "decoder", as its steps give it, and each head if there are."""
    weights = output.weights()
    maps = {} if weights is None else {"decoder": weights}
    for name, records in output.readings.items():
        if records.weights.ndim > 3:
            heads = enumerate(records.weights.unbind(1))
            maps |= {f"{name}/head.{number}": head for number, head in heads}
    return maps


def choose_map(maps: Mapping[str, AttentionWeights], layer: str = "") -> AttentionWeights:
    """Row t has the weights of target token t, BOS not counted: a head's, or a layer's mean.

    Args:
        maps: As `attention_maps` gives them.
        layer: "decoder.2", "decoder.2/head.1", "decoder.0+1"; if empty, the last layer but one,
            which aligns best (Garg 2019), or the only one.
    """
    name, later = layer.removesuffix(LATER), layer.endswith(LATER)
    layers = list(dict.fromkeys(each.split("/")[0] for each in maps if "/" in each))
    name = name or (layers[max(0, len(layers) - 2)] if layers else "decoder")
    heads = [weights for each, weights in maps.items() if each.startswith(f"{name}/head.")]
    if name in maps:
        heads = [maps[name]]
    if not heads:
        raise OptionError(f"the model has no layer {name}. It has {', '.join(layers or maps)}.")
    weights = heads[0] if len(heads) == 1 else torch.stack(heads).mean(0)
    # The first row wraps around to EOS, which aligns with nothing.
    return weights.roll(-1, 1) if later else weights
