"""A trained aligner: pairs in, soft alignments of both directions out."""

import math
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from regard.seq2seq.alignment import UnitWeights, format_pharaoh, pool_to_units, unit_spans
from regard.seq2seq.batch import Span
from regard.seq2seq.data import (
    MaxLength,
    Note,
    Pair,
    PairCodec,
    Progress,
    ValidatedCorpus,
    by_length,
    windowed,
)
from regard.seq2seq.errors import ConfigError
from regard.seq2seq.metrics import MetricScore
from regard.seq2seq.models.aligner import Aligner
from regard.seq2seq.protocols import Prediction
from regard.tasks.align.attention_view import attention_map
from regard.tasks.align.validation import AlignmentValidator
from regard.tasks.config.align import AlignConfig
from regard.tasks.pairs.aligning import AlignmentOptions, linked
from regard.tasks.pairs.lengths import default_max_length, warn_length
from regard.tasks.pairs.tokenizers import shown_units
from regard.tasks.plots import AttentionMap


class WordAligner:
    """The `Predictor` of align: its answer to a pair is the word alignment.

    aligner = regard.load("runs/aligner")
    """

    symmetry = "product"
    threshold = 0.5
    """Pairs with a combined posterior above this are linked."""

    def __init__(self, model: Aligner, codec: PairCodec, config: AlignConfig, about: str) -> None:
        self.model, self.codec, self.config, self.about = model.eval(), codec, config, about
        self.max_length: MaxLength = default_max_length(config.data.longest)
        """Maximum length of each side; change it by `dataclasses.replace`."""
        self.note: Note = warn_length
        """Called for each line that was truncated or skipped."""

    def aligner(self, reverse: object = None) -> "WordAligner":
        """Itself: it has both directions."""
        if reverse is not None:
            raise ConfigError("--reverse: an aligner has both directions. Leave the option out.")
        return self

    def check(self, pairs: ValidatedCorpus[Pair]) -> None:
        """Any pair can be aligned."""

    def stream(
        self, items: Iterable[Pair], *, progress: Progress | None = None
    ) -> Iterator[list[Prediction]]:
        """The word alignment of each pair, as `0-0 1-2`."""
        options = AlignmentOptions(symmetry=self.symmetry, threshold=self.threshold)
        for soft in self.soft(items, progress=progress):
            yield [Prediction(format_pharaoh(linked(soft, options).links), 0.0)]

    def evaluate(
        self, items: Sequence[Pair], *, progress: Progress | None = None
    ) -> list[MetricScore]:
        """The agreement of both directions, and the perplexity per word over both."""
        kept = [pair for item in items if (pair := self.bounded(item)).source and pair.target]
        scores = AlignmentValidator(kept, self.codec, len(kept))(self.model, 0).scores
        return [
            MetricScore("agreement", scores["agreement"], "links:argmax|directions:2", len(kept)),
            MetricScore(
                "perplexity", math.exp(scores["loss"]), "per:word|base:e", len(kept),
                higher_is_better=False,
            ),
        ]  # fmt: skip

    def attention(
        self, item: Pair, *, units: str = "", layer: str = "", maps: str = "one"
    ) -> AttentionMap:
        """The posterior of each link of a pair."""
        units = units or shown_units(self.config.text.kind)
        return attention_map(self, item, units=units, layer=layer, one=maps == "one")

    def bounded(self, pair: Pair) -> Pair:
        """The pair truncated to `max_length`; empty if it is skipped."""
        return self.max_length(self.codec, pair, self.note) or pair.emptied()

    def soft(
        self,
        pairs: Iterable[Pair],
        *,
        units: str = "word",
        layer: str = "",
        progress: Progress | None = None,
    ) -> Iterator[tuple[UnitWeights, UnitWeights]]:
        """The soft alignments of each pair: target to source, and source to target.

        Args:
            pairs: Sources with their targets; streamed in bounded memory.
            units: "word", "subword" (the model's tokens) or "char".
            layer: Must be empty: an aligner has no layers.
            progress: Called with the number of pairs done.
        """
        if layer:
            raise ConfigError(f"--layer {layer}: an aligner has no layers. Leave it out.")
        kept = (self.bounded(pair) for pair in pairs)
        return windowed(
            kept, by_length(self.codec), lambda _, some: self._batch(some, units), progress
        )

    def _batch(
        self, pairs: Sequence[Pair], units: str
    ) -> Iterator[tuple[UnitWeights, UnitWeights]]:
        batch = self.codec.collate(range(len(pairs)), pairs)
        assert batch.target is not None
        device = next(self.model.parameters()).device
        found = self.model.posteriors(batch.to(device))
        for row, pair in enumerate(pairs):
            source, target = batch.source.spans[row][:-1], batch.target.spans[row][1:-1]
            sides = (pair.source, source), (pair.target or "", target)
            spans = [unit_spans(units, text, tokens) for text, tokens in sides]
            forward = found.forward[row, : len(target), : len(source)].cpu()
            backward = found.backward[row, : len(target), : len(source)].cpu().mT
            yield (
                _pooled(forward, target, source, spans[1], spans[0]),
                _pooled(backward, source, target, spans[0], spans[1]),
            )


def _pooled(
    weights: Tensor,
    rows: Sequence[Span],
    columns: Sequence[Span],
    row_units: Sequence[Span],
    column_units: Sequence[Span],
) -> UnitWeights:
    """Pooled to units; what a row lacks to 1 is the probability of NULL."""
    null = (1 - weights.sum(-1, keepdim=True)).clamp(min=0.0)
    # An empty span after the text's end, which belongs to no unit.
    ends = [*columns, (columns[-1][1] if columns else 0,) * 2]
    return pool_to_units(torch.cat([weights, null], -1), rows, ends, row_units, column_units)
