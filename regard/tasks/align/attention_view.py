"""The attention map of an aligner: the posterior of each link of one pair."""

from typing import TYPE_CHECKING

import torch

from regard.seq2seq.alignment import product
from regard.seq2seq.data import Pair
from regard.seq2seq.errors import DataError
from regard.tasks.pairs.aligning import unit_texts
from regard.tasks.plots import AttentionMap
from regard.tasks.plots.terminal_text import isolate

if TYPE_CHECKING:
    from regard.tasks.align.aligner import WordAligner


def attention_map(
    aligner: "WordAligner",
    item: Pair,
    *,
    units: str = "word",
    layer: str = "",
    one: bool = True,
) -> AttentionMap:
    """The posterior of each link of a pair, by both directions combined or by each.

    Args:
        aligner: The aligner.
        item: A pair; an aligner generates no target, so it must be given.
        units: "word", "subword" (the model's tokens) or "char".
        layer: Must be empty: an aligner has no layers.
        one: Only the combination of both directions?
    """
    if not item.source.strip():
        raise DataError("the source is empty. Give a text with words.")
    if item.target is None or not item.target.strip():
        raise DataError("an aligner generates no target. Give one, after the source.")
    pair = aligner.bounded(item)
    if not pair.source:
        raise DataError("the pair is too long and too_long is skip. Give a shorter one.")
    forward, backward = next(aligner.soft([pair], units=units, layer=layer))
    both = product(forward.weights, backward.weights)
    none = (forward.nothing * (1 - both.sum(-1)).clamp(min=0.0)).sqrt()
    readings = {"both directions": torch.cat([both, none[:, None]], 1)}
    if not one:
        readings["source → target"] = torch.cat([forward.weights, forward.nothing[:, None]], 1)
        readings["target → source"] = torch.cat(
            [backward.weights.mT, torch.zeros_like(none)[:, None]], 1
        )
    source, words = ([text or " " for text in s] for s in unit_texts(aligner.codec, pair, units))
    title = f"{isolate(pair.source)} → {isolate(pair.target or '')}"
    legend = "how probable each link is (∎: no word)"
    return AttentionMap(title, legend, [*source, ""], words, readings)
