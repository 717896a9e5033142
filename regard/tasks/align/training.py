"""Training an aligner in a folder; the same again goes on where it was."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from regard.seq2seq.aligner import Aligner, Side, spelling
from regard.seq2seq.data import PairCodec, Text
from regard.seq2seq.training import Outcome, Plan, Reporter, Validate
from regard.tasks.align.judging import Judge
from regard.tasks.config.align import Align
from regard.tasks.pairs.examples import Examples
from regard.tasks.pairs.training import Task, train_on_pairs

PASSES, LEAST = 5, 400
"""How often an aligner sees each pair, and how many updates it makes at least, unless told."""


def train(directory: Path | str, config: Align, reporter: Reporter | None = None) -> Outcome:
    """Train in a folder, or go on there."""
    task = Task(codec=codec_of, model=_model, judge=_judge, fixed=_fixed, steps=updates)
    return train_on_pairs(task, directory, config, reporter)


def updates(config: Align, planned: Plan) -> int:
    """As many as were asked for, or what suits the pairs: more learn a small text by heart."""
    training = config.training
    return training.steps or max(LEAST, -(-PASSES * len(planned(0)) // training.accumulate))


def codec_of(_: Align, texts: tuple[Text, Text], _links: object = None) -> PairCodec:
    """Pairs to batches."""
    return PairCodec(*texts)


def build_aligner(
    config: Align,
    codec: PairCodec,
    frequencies: tuple[Int[Tensor, " source"], Int[Tensor, " target"]],
) -> Aligner:
    """An aligner with new weights."""
    sides = [
        Side(counts, _spelt(text, config.model.spelling), config.model.size)
        for counts, text in zip(frequencies, (codec.source_text, codec.target_text), strict=True)
    ]
    return Aligner(sides[0], sides[1], config.model.jumps)


def _spelt(text: Text, size: int) -> Tensor:
    """What stands for no word is spelt like none."""
    special = len(text.pieces) - len(text.described()["pieces"])
    words = [piece.strip() for piece in text.pieces[special:]]
    return spelling([*[""] * special, *words], size)


def _model(config: Align, codec: PairCodec, examples: Examples) -> Aligner:
    counts = (
        _frequencies(codec.source_text, examples.sources()),
        _frequencies(codec.target_text, examples.targets()),
    )
    return build_aligner(config, codec, counts)


def _frequencies(text: Text, lines: Iterable[str]) -> Int[Tensor, " word"]:
    counts: Counter[int] = Counter()
    for line in lines:
        counts.update(text.encode(line).ids)
    return torch.tensor([counts[number] for number in range(len(text))])


def _judge(_: Align, codec: PairCodec, examples: Examples) -> Validate:
    return Judge(examples.valid, codec)


def _fixed(_: Align) -> dict[str, Any]:
    return {}
