"""Soft word alignments of given pairs, by a translator's attention."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from regard.seq2seq.alignment import Argmax, UnitWeights, pool_to_units, unit_spans
from regard.seq2seq.batch import SourceTarget
from regard.seq2seq.data import BoundedPairs, Pair, Progress, ValidatedCorpus, by_length, windowed
from regard.seq2seq.decoders.attention_maps import LATER
from regard.seq2seq.errors import ConfigError
from regard.tasks.pairs.aligning import Soft, agreement
from regard.tasks.translate.alignment_layer import default_alignment_layer, layers, token_weights
from regard.tasks.translate.guided_alignment import is_guided
from regard.tasks.translate.oov_check import check_oov

if TYPE_CHECKING:
    from regard.tasks.translate.translator import Translator

MAX_PAIRS = 200
"""Number of pairs by which the layers of two directions are chosen."""


class ByAttention:
    """Aligns by the attention of a translator, or of two, one for each direction.

    Args:
        one: From source to target.
        other: From target to source.
    """

    symmetry = "grow-diag-final-and"
    threshold = 0.3

    def __init__(self, one: "Translator", other: "Translator | None" = None) -> None:
        self.one, self.other, self.codec = one, other, one.codec

    def check(self, pairs: ValidatedCorpus[Pair]) -> None:
        """Raise if a target has characters that are not in the vocabulary."""
        check_oov(self.one, pairs)
        if self.other is not None:
            check_oov(self.other, pairs, swapped=True)

    def bounded(self, pair: Pair) -> Pair:
        """The pair truncated to the maximum length of each direction; empty if it is skipped."""
        kept = self.one.bounded(pair) or pair.emptied()
        if self.other is None:
            return kept
        return (self.other.bounded(kept.swapped()) or pair.emptied()).swapped()

    def soft(
        self,
        pairs: Sequence[Pair],
        *,
        units: str = "word",
        layer: str = "",
        progress: Progress | None = None,
    ) -> Iterator[Soft]:
        """The attention of each direction, by the layers that agree best."""
        if self.other is None:
            alone = soft_alignments(self.one, pairs, units=units, layer=layer, progress=progress)
            yield from ((each, None) for each in alone)
            return
        pairs = BoundedPairs(pairs, self.bounded)  # the same words for both
        layer, reverse_layer = agreeing_layers(self.one, self.other, pairs, units, layer)
        swapped = (pair.swapped() for pair in pairs)
        forward = soft_alignments(self.one, pairs, units=units, layer=layer, progress=progress)
        backward = soft_alignments(self.other, swapped, units=units, layer=reverse_layer)
        yield from zip(forward, backward, strict=True)


def check_has_attention(translator: "Translator") -> None:
    """Raise if none of its models has attention."""
    if not translator.readers:
        raise ConfigError(
            f"a model of kind {translator.config.model.kind} has no attention, so there is nothing "
            'to align by. Train another: model.kind = "bahdanau", say.'
        )


def soft_alignments(
    translator: "Translator",
    pairs: Iterable[Pair],
    *,
    units: str = "word",
    layer: str = "",
    progress: Progress | None = None,
) -> Iterator[UnitWeights]:
    """The attention of each pair's target units to its source units.

    Args:
        translator: The translator.
        pairs: Sources with their targets; streamed in bounded memory.
        units: "word", "subword" or "char".
        layer: "decoder.2", "decoder.2/head.1", "decoder.0+1"; if empty, the default.
        progress: Called with the number of pairs done.
    """
    check_has_attention(translator)  # raises before anything is computed
    kept = (translator.bounded(pair) or pair.emptied() for pair in pairs)
    return windowed(
        kept,
        by_length(translator.codec),
        lambda _, some: _batch(translator, some, units, layer),
        progress,
    )


def agreeing_layers(
    forward: "Translator",
    backward: "Translator",
    pairs: Sequence[Pair],
    units: str = "word",
    layer: str = "",
) -> tuple[str, str]:
    """The layers of two directions whose links agree best on some pairs; no gold is used.

    If a layer of the first direction is given, only the other's is chosen.
    """
    some = [pair for pair in pairs[:MAX_PAIRS] if pair.target]
    sides = forward, backward
    swapped = [pair.swapped() for pair in some]
    links = []
    for translator, given in zip(sides, (some, swapped), strict=True):
        by_layer = {}
        names = [layer] if layer and translator is forward else _candidates(translator)
        for name in names:
            soft = soft_alignments(translator, given, units=units, layer=name)
            by_layer[name] = [Argmax()(each.weights, each.nothing) for each in soft]
        links.append(by_layer)
    return max(
        ((one, other) for one in links[0] for other in links[1]),
        key=lambda chosen: agreement(links[0][chosen[0]], links[1][chosen[1]]),
    )


def _candidates(translator: "Translator") -> list[str]:
    """Layers that may hold the alignment: at the token's own step, or at the next one."""
    if is_guided(translator.config):
        return [default_alignment_layer(translator.config)]
    known = layers(translator.config)
    return known if known == [""] else [name + later for name in known for later in ("", LATER)]


def _batch(
    translator: "Translator", pairs: Sequence[Pair], units: str, layer: str
) -> list[UnitWeights]:
    batch = translator.codec.collate(range(len(pairs)), pairs)
    return by_pair(translator, batch, pairs, units, layer)


def by_pair(
    translator: "Translator", batch: SourceTarget, pairs: Sequence[Pair], units: str, layer: str
) -> list[UnitWeights]:
    """For each row of a batch, the attention of its target units to its source units."""
    assert batch.target is not None
    weights = token_weights(translator.readers, batch, layer)
    found = []
    for row, pair in enumerate(pairs):
        source_spans, target_spans = batch.source.spans[row], batch.target.spans[row][1:-1]
        tokens = weights[row, : len(target_spans), : len(source_spans)]
        target_units = unit_spans(units, pair.target or "", target_spans)
        source_units = unit_spans(units, pair.source, source_spans)
        found.append(pool_to_units(tokens, target_spans, source_spans, target_units, source_units))
    return found
