"""Training a translator in a folder; the same again goes on where it was."""

from pathlib import Path
from typing import Any

from regard.seq2seq.data import PairCodec, Text
from regard.seq2seq.model import EncoderDecoder
from regard.seq2seq.training import Outcome, Reporter, Validate
from regard.tasks.config.models import build_model
from regard.tasks.config.translate import Translate
from regard.tasks.pairs.examples import Examples
from regard.tasks.pairs.training import Task, train_on_pairs
from regard.tasks.translate.judging import Judge


def train(directory: Path | str, config: Translate, reporter: Reporter | None = None) -> Outcome:
    """Train in a folder, or go on there."""
    task = Task(codec=codec_of, model=_model, judge=_judge, fixed=_fixed)
    return train_on_pairs(task, directory, config, reporter)


def codec_of(config: Translate, texts: tuple[Text, Text]) -> PairCodec:
    """Pairs to batches, as the model needs them."""
    return PairCodec(*texts, copying=getattr(config.model, "copying", False))


def _model(config: Translate, codec: PairCodec, _: Examples) -> EncoderDecoder:
    source, target = codec.source_text, codec.target_text
    return build_model(
        config.model, len(source), len(target),
        shared=source is target,
        smoothing=config.training.smoothing, coverage=config.training.coverage,
    )  # fmt: skip


def _judge(config: Translate, codec: PairCodec, examples: Examples) -> Validate:
    return Judge(examples.valid, codec, config.training.watch)


def _fixed(config: Translate) -> dict[str, Any]:
    return {"smoothing": config.training.smoothing, "coverage": config.training.coverage}
