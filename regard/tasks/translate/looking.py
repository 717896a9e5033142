"""What a translator looked at for one text, by units that people count in."""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from regard.seq2seq.data import Pair
from regard.seq2seq.errors import DataError
from regard.seq2seq.seams import Answer
from regard.tasks.translate.aligning import layers, soft_alignments, unit_spans, usual_layer
from regard.tasks.translate.translator import Translator


@dataclass(frozen=True, slots=True)
class Looked:
    """An answer with its weights between units, and those of other layers."""

    title: str
    legend: str
    answer: Answer
    readings: Mapping[str, Tensor]
    """By layer, the one that is shown first coming first."""


def looked(
    translator: Translator,
    text: str,
    target: str | None,
    *,
    units: str = "word",
    layer: str = "",
    beam: int | None = None,
) -> Looked:
    """What was read of a text for a target, or for the model's own answer."""
    if not text.strip():
        raise DataError("the text is empty. Give one that can be read.")
    given = translator.predict([text], beam=beam)[0].text if target is None else target
    pair = Pair(text, given, 1)
    chosen = layer or usual_layer(translator)
    readings = {
        name or "decoder": next(
            soft_alignments(translator, [pair], units=units, layer=name)
        ).weights
        for name in dict.fromkeys([chosen, *layers(translator)])
    }
    weights = next(iter(readings.values()))
    spans = unit_spans(translator, pair, units)
    sides = [
        [whole[start:end] for start, end in own]
        for whole, own in zip((text, given), spans, strict=True)
    ]
    how = "forced to the given target" if target is not None else "for the model's own answer"
    heads = ", the mean of its heads" if chosen.startswith("decoder.") and "/" not in chosen else ""
    legend = f"Read by {chosen or 'the decoder'}{heads}, {how}"
    answer = Answer(given, 0.0, sides[0], sides[1], weights)
    return Looked(f"{text} → {given}", legend, answer, readings)
