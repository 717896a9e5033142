"""Which reading belongs to which token: of a layer or a head that is named, or of the usual one."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.seq2seq.batch import SourceTarget
from regard.seq2seq.decoders.attention_maps import choose_map
from regard.seq2seq.models.encoder_decoder import EncoderDecoder
from regard.tasks.config.translate import TranslateConfig
from regard.tasks.translate.guided_alignment import guided_alignment_layer, is_guided

Weights = Float[Tensor, "batch target source"]


@dataclass(frozen=True, slots=True)
class LayerChoice:
    """A model with attention, and whose reading of it is taken where none is named."""

    model: EncoderDecoder
    usual: str


def layers(config: TranslateConfig) -> list[str]:
    """The names of a model's layers that read the source; one empty name if there is but one."""
    if config.model.kind != "transformer":
        return [""]
    return [f"decoder.{number}" for number in range(config.model.layers)]


def usual_layer(config: TranslateConfig) -> str:
    """The one that was guided; else the layer before the last, often an alignment (Garg 2019)."""
    if is_guided(config):
        return guided_alignment_layer(config)
    known = layers(config)
    return known[max(0, len(known) - 2)]


@torch.inference_mode()
def token_weights(readers: Sequence[LayerChoice], batch: SourceTarget, layer: str = "") -> Weights:
    """Row t is what token t of the target, `BEGIN` not counted, reads: the mean over the models.

    Args:
        readers: Whose readings.
        batch: With targets.
        layer: As `attention_maps.choose_map` takes it; if empty, each model's usual one.
    """
    own = []
    for reader in readers:
        given = batch.to(next(reader.model.parameters()).device)
        own.append(choose_map(reader.model.read(given), layer or reader.usual).cpu())
    return own[0] if len(own) == 1 else torch.stack(own).mean(0)
