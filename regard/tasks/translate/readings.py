"""Which reading belongs to which token: of one layer or head, shifted by the decoder's delay."""

from collections.abc import Mapping, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from regard.seq2seq.errors import ConfigError, DataError
from regard.seq2seq.examples import Pairs
from regard.seq2seq.model import EncoderDecoder
from regard.tasks.translate.translator import Translator

Weights = Float[Tensor, "batch target source"]


def readers(translator: Translator) -> list[EncoderDecoder]:
    """Those of a translator's models that have attention; raise if none has."""
    found = [each for each in (translator.model, *translator.others) if each.decoder.reads]
    if not found:
        raise ConfigError(
            f"a model of kind {translator.config.model.kind} has no attention, so there is nothing "
            'to align by. Train another: model.kind = "bahdanau", say.'
        )
    return found


LATER = "+1"
"""At the end of a layer's name: its reading a token later, when the token itself has become what
asks. In the lower layers of a Transformer that is where a token looks for its like (Chen 2020)."""


@torch.inference_mode()
def token_weights(models: Sequence[EncoderDecoder], batch: Pairs, layer: str = "") -> Weights:
    """Row t is what token t of the target, `BEGIN` not counted, reads: the mean over the models.

    Args:
        models: All of them have attention.
        batch: With targets.
        layer: "decoder.2", "decoder.2/head.1", "decoder.0+1" for the reading a token later; if
            empty, the layer before the last, where words look for their like (Garg 2019).
    """
    own = []
    for model in models:
        given = batch.to(next(model.parameters()).device)
        own.append(chosen(model.read(given), layer, model.decoder.delay).cpu())
    return own[0] if len(own) == 1 else torch.stack(own).mean(0)


def chosen(readings: Mapping[str, Tensor], layer: str, delay: int = 0) -> Weights:
    """The weights of one layer, the mean of its heads, or of one head."""
    name, later = layer.removesuffix(LATER), layer.endswith(LATER)
    known = list(dict.fromkeys(each.split("/")[0] for each in readings if "/" in each))
    name = name or (known[max(0, len(known) - 2)] if known else "decoder")
    heads = [own for each, own in readings.items() if each.startswith(f"{name}/head.")]
    if name in readings:
        heads = [readings[name]]
    if not heads:
        raise DataError(f"the model has no layer {name}. It has {', '.join(known or readings)}.")
    found = heads[0] if len(heads) == 1 else torch.stack(heads).mean(0)
    # A row comes round to `END`, which nobody looks at.
    return found.roll(-(delay + later), 1)
