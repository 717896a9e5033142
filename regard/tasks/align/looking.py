"""What an aligner finds for one pair, to be drawn."""

import torch

from regard.seq2seq.data import Pair
from regard.seq2seq.errors import DataError
from regard.seq2seq.reading import product
from regard.tasks.align.aligner import WordAligner
from regard.tasks.pairs.aligning import unit_texts
from regard.tasks.pictures import Looked
from regard.tasks.pictures.lines import isolated


def looked(
    aligner: WordAligner,
    text: str,
    target: str | None,
    *,
    units: str = "word",
    layer: str = "",
    one: bool = True,
) -> Looked:
    """How probable each link of a pair is, by both directions together or by each.

    Args:
        aligner: Who finds it.
        text: The source.
        target: An aligner writes none of its own, so that it must be given.
        units: "word", "subword" (what the model counts as words) or "char".
        layer: None: an aligner has no layers.
        one: Both directions together only?
    """
    if not text.strip():
        raise DataError("the text is empty. Give one that can be read.")
    if target is None or not target.strip():
        raise DataError("an aligner writes nothing. Give the target, too, after the text.")
    pair = Pair(text, target, 1)
    forward, backward = next(aligner.soft([pair], units=units, layer=layer))
    both = product(forward.weights, backward.weights)
    none = (forward.nothing * (1 - both.sum(-1)).clamp(min=0.0)).sqrt()
    readings = {"both directions": torch.cat([both, none[:, None]], 1)}
    if not one:
        readings["source → target"] = torch.cat([forward.weights, forward.nothing[:, None]], 1)
        readings["target → source"] = torch.cat(
            [backward.weights.mT, torch.zeros_like(none)[:, None]], 1
        )
    source, words = unit_texts(aligner.codec, pair, units)
    title = f"{isolated(text)} → {isolated(target)}"
    legend = "how probable each link is (∎: no word)"
    return Looked(title, legend, [*source, ""], words, readings)
