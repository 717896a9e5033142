"""Guided alignment: which layer or head is trained towards given links."""

import re

from regard.seq2seq.decoders.attention_maps import LATER
from regard.seq2seq.errors import ConfigError
from regard.tasks.config.model import NoAttentionConfig, TransformerConfig
from regard.tasks.config.translate import TranslateConfig


def is_guided(config: TranslateConfig) -> bool:
    """Is it trained with guided alignment?"""
    return bool(config.data.links and config.training.links)


def check_guided_alignment(config: TranslateConfig) -> None:
    """Raise if the model has no attention to guide, or lacks the configured layer."""
    model, layer = config.model, config.training.links_layer
    if not is_guided(config):
        return
    if isinstance(model, NoAttentionConfig):
        raise ConfigError(
            "data.links guides attention, but a model of kind plain has none. Choose another "
            'model.kind, "bahdanau" say, or leave the links out.'
        )
    if not layer:
        return
    name = layer.removesuffix(LATER)
    if not isinstance(model, TransformerConfig):
        if name != "decoder":
            raise ConfigError(f'training.links_layer is "{layer}". This model has only "decoder".')
        return
    form = re.fullmatch(r"decoder\.(\d+)(?:/head\.(\d+))?", name)
    if form is None or int(form[1]) >= model.layers or int(form[2] or 0) >= model.heads:
        raise ConfigError(
            f'training.links_layer is "{layer}". This model has decoder.0 to decoder.'
            f"{model.layers - 1}, each with /head.0 to /head.{model.heads - 1}, and with +1 behind "
            "it the same a token later."
        )


def guided_alignment_layer(config: TranslateConfig) -> str:
    """The layer that is guided, or would be.

    In a Transformer that is the first layer at the next step, where the query is the token itself
    (Chen 2020). One step earlier, the layer would have to predict the aligned word first.
    """
    chosen = config.training.links_layer
    if chosen or not isinstance(config.model, TransformerConfig):
        return chosen
    return f"decoder.0{LATER}"
