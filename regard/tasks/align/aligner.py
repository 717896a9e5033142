"""A trained aligner: pairs in, soft alignments of both directions out."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from regard.seq2seq.alignment import UnitWeights, pool_to_units, unit_spans
from regard.seq2seq.batch import Span
from regard.seq2seq.data import MaxLength, Note, Pair, PairCodec
from regard.seq2seq.errors import ConfigError
from regard.seq2seq.models.aligner import Aligner
from regard.tasks.align.training import build_aligner, codec_of
from regard.tasks.config.align import AlignConfig
from regard.tasks.pairs.aligning import Progress, in_windows
from regard.tasks.pairs.lengths import max_length_of, warn
from regard.tasks.pairs.runs import check_task, open_run


class WordAligner:
    """A model with everything that it needs to align.

    aligner = WordAligner.load("runs/aligner")
    """

    def __init__(self, model: Aligner, codec: PairCodec, config: AlignConfig, about: str) -> None:
        self.model, self.codec, self.config, self.about = model.eval(), codec, config, about
        self.max_length: MaxLength = max_length_of(config)
        """How long each side may be; `dataclasses.replace` gives another."""
        self.note: Note = warn
        """Hears of each line that was truncated or skipped."""

    @classmethod
    def load(cls, directory: Path | str, *, last: bool = False) -> "WordAligner":
        """The best weights of a run by its loss, or its last."""
        check_task(directory, "align", "Give a run of regard train align.")
        run = open_run(directory, AlignConfig, last=last)
        codec = codec_of(run.config, run.texts)
        unseen = [
            torch.zeros(len(text), dtype=torch.long)
            for text in (codec.source_tokenizer, codec.target_tokenizer)
        ]
        model = build_aligner(run.config, codec, (unseen[0], unseen[1]))
        return cls(model, codec, run.config, run.restore(model))

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
        return in_windows(self.codec, kept, lambda some: self._batch(some, units), progress)

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
