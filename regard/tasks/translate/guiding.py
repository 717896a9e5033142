"""Which readings given links can guide."""

import re

from regard.seq2seq.errors import ConfigError
from regard.tasks.config.model import Plain, Transformer
from regard.tasks.config.translate import Translate


def check_guiding(config: Translate) -> None:
    """Raise if the model has no reading that links could guide, or not the one that is named."""
    model, layer = config.model, config.training.links_layer
    if not config.data.links or not config.training.links:
        return
    if isinstance(model, Plain):
        raise ConfigError(
            "data.links guides attention, but a model of kind plain has none. Choose another "
            'model.kind, "bahdanau" say, or leave the links out.'
        )
    if not layer:
        return
    if not isinstance(model, Transformer):
        if layer != "decoder":
            raise ConfigError(f'training.links_layer is "{layer}". This model has only "decoder".')
        return
    form = re.fullmatch(r"decoder\.(\d+)(?:/head\.(\d+))?", layer)
    if form is None or int(form[1]) >= model.layers or int(form[2] or 0) >= model.heads:
        raise ConfigError(
            f'training.links_layer is "{layer}". This model has decoder.0 to decoder.'
            f"{model.layers - 1}, each with /head.0 to /head.{model.heads - 1}."
        )
