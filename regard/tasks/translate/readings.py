"""Which reading belongs to which token: of one layer or head, shifted by the decoder's delay."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from regard.seq2seq.errors import ConfigError
from regard.seq2seq.examples import Pairs
from regard.seq2seq.model import EncoderDecoder
from regard.seq2seq.readings import chosen
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
        layer: As `regard.seq2seq.readings.chosen` has it.
    """
    own = []
    for model in models:
        given = batch.to(next(model.parameters()).device)
        own.append(chosen(model.read(given), layer, model.decoder.delay).cpu())
    return own[0] if len(own) == 1 else torch.stack(own).mean(0)
