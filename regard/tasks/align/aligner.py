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
from regard.tasks.pairs.aligning import Aligning, linked
from regard.tasks.pairs.lengths import default_max_length, warn_length
from regard.tasks.plots import AttentionMap


class WordAligner:
    """The `Predictor` of align: its answer to a pair are the links of its words.

    aligner = regard.load("runs/aligner")
    """

    symmetry = "product"
    threshold = 0.5
    """A link is one that is more probable than not, both directions together."""

    def __init__(self, model: Aligner, codec: PairCodec, config: AlignConfig, about: str) -> None:
        self.model, self.codec, self.config, self.about = model.eval(), codec, config, about
        self.max_length: MaxLength = default_max_length(config.data.longest)
        """How long each side may be; `dataclasses.replace` gives another."""
        self.note: Note = warn_length
        """Hears of each line that was truncated or skipped."""

    def aligner(self, reverse: object = None) -> "WordAligner":
        """Itself, for it has both directions."""
        if reverse is not None:
            raise ConfigError("--reverse: an aligner has both directions. Leave the option out.")
        return self

    def check(self, pairs: ValidatedCorpus[Pair]) -> None:
        """Any pair can be aligned."""

    def stream(
        self, items: Iterable[Pair], *, progress: Progress | None = None
    ) -> Iterator[list[Prediction]]:
        """For each pair its links between words, as `0-0 1-2`."""
        options = Aligning(symmetry=self.symmetry, threshold=self.threshold)
        for soft in self.soft(items, progress=progress):
            yield [Prediction(format_pharaoh(linked(soft, options).links), 0.0)]

    def evaluate(
        self, items: Sequence[Pair], *, progress: Progress | None = None
    ) -> list[MetricScore]:
        """How far both directions agree, and the perplexity of a word by both together."""
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
        """How probable each link of a pair is."""
        return attention_map(self, item, units=units or "word", layer=layer, one=maps == "one")

    def bounded(self, pair: Pair) -> Pair:
        """As much of the pair as may be read; nothing if it is skipped."""
        return self.max_length(self.codec, pair, self.note) or pair.emptied()

    def soft(
        self,
        pairs: Iterable[Pair],
        *,
        units: str = "word",
        layer: str = "",
        progress: Progress | None = None,
    ) -> Iterator[tuple[UnitWeights, UnitWeights]]:
        """For each pair what target units come of source units, and source units of target units.

        Args:
            pairs: Sources with their targets, in bounded memory however many there are.
            units: "word", "subword" (what the model counts as words) or "char".
            layer: None: an aligner has no layers.
            progress: Hears how many pairs are done.
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
            own = [unit_spans(units, text, spans) for text, spans in sides]
            forward = found.forward[row, : len(target), : len(source)].cpu()
            backward = found.backward[row, : len(target), : len(source)].cpu().mT
            yield (
                _joined(forward, target, source, own[1], own[0]),
                _joined(backward, source, target, own[0], own[1]),
            )


def _joined(
    weights: Tensor,
    rows: Sequence[Span],
    columns: Sequence[Span],
    row_units: Sequence[Span],
    column_units: Sequence[Span],
) -> UnitWeights:
    """Between units; what a row lacks to 1 is about none."""
    none = (1 - weights.sum(-1, keepdim=True)).clamp(min=0.0)
    # A place after the text's end, which no unit has.
    ends = [*columns, (columns[-1][1] if columns else 0,) * 2]
    return pool_to_units(torch.cat([weights, none], -1), rows, ends, row_units, column_units)
