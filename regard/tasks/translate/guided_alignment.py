"""Which reading given links guide."""

import re

from regard.seq2seq.decoders.attention_maps import LATER
from regard.seq2seq.errors import ConfigError
from regard.tasks.config.model import NoAttentionConfig, TransformerConfig
from regard.tasks.config.translate import TranslateConfig


def is_guided(config: TranslateConfig) -> bool:
    """Do given links count in its training?"""
    return bool(config.data.links and config.training.links)


def check_guided_alignment(config: TranslateConfig) -> None:
    """Raise if the model has no reading that links could guide, or not the one that is named."""
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
    """The reading that links guide, or would: where a token can look for its like.

    In a Transformer that is the first layer, a token later: what asks is the token itself (Chen
    2020). Before, the layer would have to know where the word stands that it is about to say.
    """
    chosen = config.training.links_layer
    if chosen or not isinstance(config.model, TransformerConfig):
        return chosen
    return f"decoder.0{LATER}"
