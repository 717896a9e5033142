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


@torch.inference_mode()
def token_weights(models: Sequence[EncoderDecoder], batch: Pairs, layer: str = "") -> Weights:
    """Row t is what token t of the target, `BEGIN` not counted, reads: the mean over the models.

    Args:
        models: All of them have attention.
        batch: With targets.
        layer: "decoder.2", or "decoder.2/head.1"; if empty, the layer before the last, where words
            look for their like (Garg 2019).
    """
    own = []
    for model in models:
        given = batch.to(next(model.parameters()).device)
        weights = chosen(model.read(given), layer).cpu()
        delay = model.decoder.delay
        own.append(weights.roll(-delay, 1))  # a row comes round to `END`, which nobody looks at
    return own[0] if len(own) == 1 else torch.stack(own).mean(0)


def chosen(readings: Mapping[str, Tensor], layer: str) -> Weights:
    """The weights of one layer, the mean of its heads, or of one head."""
    known = list(dict.fromkeys(name.split("/")[0] for name in readings if "/" in name))
    layer = layer or (known[max(0, len(known) - 2)] if known else "decoder")
    if layer in readings:
        return readings[layer]
    heads = [own for name, own in readings.items() if name.startswith(f"{layer}/head.")]
    if not heads:
        raise DataError(f"the model has no layer {layer}. It has {', '.join(known or readings)}.")
    return torch.stack(heads).mean(0)
