"""Attention weights of a forced target: of any layer and head, in one forward pass.

An alignment may be better at the next step, in layers that represent the previous token (Chen
2020); an attention map shows the weights that each token was predicted with.
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


def bounded_pair(translator: "Translator", pair: Pair) -> Pair:
    """The pair truncated to the maximum length; raises if it is skipped."""
    kept = translator.bounded(pair)
    if kept is None:
        raise DataError("the pair is too long and too_long is skip. Give a shorter one.")
    return kept


@torch.inference_mode()
def forced_attention(
    translator: "Translator", pair: Pair, units: str, names: Iterable[str]
) -> dict[str, UnitWeights]:
    """By name: the attention of the target's units to those of the source.

    Args:
        translator: The translator.
        pair: A source and its target.
        units: "word", "subword" or "char".
        names: Layers or heads, as in "decoder.2" or "decoder.2/head.1"; an empty one is the only
            attention of a decoder.
    """
    if not translator.model.decoder.has_attention:
        raise ConfigError(
            f"a model of kind {translator.config.model.kind} has no attention, so there is nothing "
            'to show. Train another: model.kind = "bahdanau", say.'
        )
    batch = translator.codec.collate([0], [pair])
    assert batch.target is not None
    device = next(translator.model.parameters()).device
    maps = translator.model.read(batch.to(device))
    target, source = batch.target.spans[0][1:-1], batch.source.spans[0]
    sides = unit_spans(units, pair.target or "", target), unit_spans(units, pair.source, source)
    return {
        name: pool_to_units(choose_map(maps, name)[0, : len(target)].cpu(), target, source, *sides)
        for name in names
    }
