"""What was read when each unit of a target was predicted: of any layer and head, in one pass.

An alignment may be better read a token later, in layers that still think of the token before (Chen
2020); a picture shows what the model had read when it said a word.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch

from regard.seq2seq.alignment import UnitWeights, pool_to_units, unit_spans
from regard.seq2seq.data import Pair
from regard.seq2seq.decoders.attention_maps import choose_map
from regard.seq2seq.errors import ConfigError, DataError

if TYPE_CHECKING:
    from regard.tasks.translate.translator import Translator


def check_has_attention(translator: "Translator", pair: Pair) -> Pair:
    """As much of the pair as may be read; raise if that is nothing."""
    kept = translator.bounded(pair)
    if kept is None:
        raise DataError("the text is too long and too_long is skip. Give a shorter one.")
    return kept


@torch.inference_mode()
def forced_attention(
    translator: "Translator", pair: Pair, units: str, names: Iterable[str]
) -> dict[str, UnitWeights]:
    """By name: what the units of the target read of those of the source.

    Args:
        translator: Who reads.
        pair: A source and its target.
        units: "word", "subword" or "char".
        names: Layers or heads, as in "decoder.2" or "decoder.2/head.1"; an empty one is the
            reading of a decoder that has but one.
    """
    if not translator.model.decoder.has_attention:
        raise ConfigError(
            f"a model of kind {translator.config.model.kind} has no attention, so it looks at "
            'nothing. Train another: model.kind = "bahdanau", say.'
        )
    batch = translator.codec.collate([0], [pair])
    assert batch.target is not None
    device = next(translator.model.parameters()).device
    readings = translator.model.read(batch.to(device))
    target, source = batch.target.spans[0][1:-1], batch.source.spans[0]
    sides = unit_spans(units, pair.target or "", target), unit_spans(units, pair.source, source)
    return {
        name: pool_to_units(
            choose_map(readings, name)[0, : len(target)].cpu(), target, source, *sides
        )
        for name in names
    }
