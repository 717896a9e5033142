"""Training a translator in a folder; the same again goes on where it was."""

from pathlib import Path
from typing import Any

from regard.seq2seq.data import Links, PairCodec, Text
from regard.seq2seq.model import EncoderDecoder
from regard.seq2seq.training import Outcome, Reporter, Validate
from regard.tasks.config.models import build_model
from regard.tasks.config.translate import Translate
from regard.tasks.pairs.examples import Examples
from regard.tasks.pairs.links import GivenLinks, open_links
from regard.tasks.pairs.training import Task, train_on_pairs
from regard.tasks.translate.guiding import check_guiding, guided_layer, is_guided
from regard.tasks.translate.judging import Judge


def train(directory: Path | str, config: Translate, reporter: Reporter | None = None) -> Outcome:
    """Train in a folder, or go on there."""
    check_guiding(config)
    task = Task(codec=codec_of, model=_model, judge=_judge, fixed=_fixed, links=_links)
    return train_on_pairs(task, directory, config, reporter)


def codec_of(config: Translate, texts: tuple[Text, Text], links: Links | None = None) -> PairCodec:
    """Pairs to batches, as the model needs them; with links by the pairs' numbers, if given."""
    copying = getattr(config.model, "copying", False)
    return PairCodec(*texts, copying=copying, links=links, nulls=config.data.link_nulls)


def _model(config: Translate, codec: PairCodec, _: Examples) -> EncoderDecoder:
    source, target = codec.source_text, codec.target_text
    training = config.training
    return build_model(
        config.model, len(source), len(target),
        shared=source is target,
        smoothing=training.smoothing, coverage=training.coverage,
        links=training.links if config.data.links else 0.0, links_layer=guided_layer(config),
    )  # fmt: skip


def _judge(config: Translate, codec: PairCodec, examples: Examples) -> Validate:
    return Judge(examples.valid, codec, config.training.watch)


def _fixed(config: Translate) -> dict[str, Any]:
    training, data = config.training, config.data
    found: dict[str, Any] = {"smoothing": training.smoothing, "coverage": training.coverage}
    if data.links:  # only then, so that runs from before go on
        found |= {"links": training.links, "links_layer": guided_layer(config)}
        found |= {"link_units": data.link_units, "link_nulls": data.link_nulls}
    return found


def _links(config: Translate, examples: Examples) -> GivenLinks | None:
    """Those that guide the training, checked; None if none do."""
    if not is_guided(config):
        return None
    found = open_links(config.data, examples.corpus)
    found.check(examples.numbers)
    return found
