"""Attention weights of a translator for given targets: of a named layer, or of its default."""

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
class ModelWithLayer:
    """A model with attention, and its default layer."""

    model: EncoderDecoder
    layer: str


def layers(config: TranslateConfig) -> list[str]:
    """The names of a model's cross-attention layers; one empty name if there is only one."""
    if config.model.kind != "transformer":
        return [""]
    return [f"decoder.{number}" for number in range(config.model.layers)]


def default_alignment_layer(config: TranslateConfig) -> str:
    """The guided layer; else the penultimate one, often the best alignment (Garg 2019)."""
    if is_guided(config):
        return guided_alignment_layer(config)
    known = layers(config)
    return known[max(0, len(known) - 2)]


@torch.inference_mode()
def token_weights(
    readers: Sequence[ModelWithLayer], batch: SourceTarget, layer: str = ""
) -> Weights:
    """Row t has the attention weights of target token t, BOS not counted: the mean over models.

    Args:
        readers: Models with attention.
        batch: With targets.
        layer: As in `attention_maps.choose_map`; if empty, each model's default.
    """
    maps = []
    for reader in readers:
        given = batch.to(next(reader.model.parameters()).device)
        maps.append(choose_map(reader.model.read(given), layer or reader.layer).cpu())
    return maps[0] if len(maps) == 1 else torch.stack(maps).mean(0)
