"""The attention map of a translator for one pair, by words, subwords or characters."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from regard.seq2seq.data import Pair
from regard.seq2seq.decoders.attention_maps import LATER
from regard.seq2seq.errors import DataError
from regard.tasks.pairs.aligning import pair_unit_spans
from regard.tasks.plots import AttentionMap
from regard.tasks.plots.terminal_text import isolate
from regard.tasks.translate.alignment_layer import default_alignment_layer, layers
from regard.tasks.translate.forced_attention import bounded_pair, forced_attention

if TYPE_CHECKING:
    from regard.tasks.translate.translator import Translator

Choice = Callable[["Translator", str], list[str]]


def attention_map(
    translator: "Translator",
    pair: Pair,
    *,
    forced: bool = True,
    units: str = "word",
    layer: str = "",
    maps: str = "one",
) -> AttentionMap:
    """The attention to the source for each unit of the target.

    Args:
        translator: The translator.
        pair: Source and target.
        forced: Was the target given? Else it is the model's own answer.
        units: "word", "subword" or "char".
        layer: Layer or head, as in "decoder.2"; the model's default if empty.
        maps: "one", "several" (the heads of the layer if it is named, else the layers), "all".
    """
    pair = bounded_pair(translator, pair)
    texts = (pair.source, pair.target or "")
    source, target = (
        [text[start:end].strip() or " " for start, end in spans]
        for text, spans in zip(texts, pair_unit_spans(translator.codec, pair, units), strict=True)
    )
    read = forced_attention(translator, pair, units, CHOICES[maps](translator, layer))
    found = {
        named(translator, name): torch.cat([own.weights, own.nothing[:, None]], 1)
        for name, own in read.items()
    }
    how = "forced to the given target" if forced else "for the model's own answer"
    return AttentionMap(
        " → ".join(map(isolate, texts)),
        f"{how} (∎: on no {'character' if units == 'char' else units})",
        [*source, ""],
        target,
        found,
    )


def answered(translator: "Translator", item: Pair) -> Pair:
    """The item truncated to the maximum length, with its target or the model's own answer."""
    if not item.source.strip():
        raise DataError("the source is empty. Give a text with words.")
    source = bounded_pair(translator, replace(item, target=None)).source
    target = item.target
    if target is None:
        target = translator.predict([source])[0].text
        if not target.strip():
            raise DataError("the model's answer is empty, so it has no words. Give a target.")
    if not target.strip():
        raise DataError("the target is empty. Give one with words, or none for the model's own.")
    return bounded_pair(translator, Pair(source, target, item.line))


def _one(translator: "Translator", layer: str) -> list[str]:
    return [layer or default_alignment_layer(translator.config)]


def _several(translator: "Translator", layer: str) -> list[str]:
    return (layer and _heads(translator, layer)) or layers(translator.config)


def _all(translator: "Translator", layer: str) -> list[str]:
    """The default layer first, then the other layers and every head."""
    known = layers(translator.config)
    heads = [head for name in known for head in _heads(translator, name)]
    return list(dict.fromkeys([*_one(translator, layer), *known, *heads]))


CHOICES: Mapping[str, Choice] = {"one": _one, "several": _several, "all": _all}


def _heads(translator: "Translator", layer: str) -> list[str]:
    """The names of a layer's heads; a head is its own."""
    config = translator.config.model
    if config.kind != "transformer":
        return []
    name, later = layer.removesuffix(LATER), LATER * layer.endswith(LATER)
    return [layer] if "/" in name else [f"{name}/head.{n}{later}" for n in range(config.heads)]


def named(translator: "Translator", layer: str) -> str:
    """The caption of a layer: says whether it is the mean of several heads."""
    config, name = translator.config.model, layer or default_alignment_layer(translator.config)
    if config.kind != "transformer" or "/" in name:
        return name or "decoder"
    return f"{name} (mean of {config.heads} heads)"
