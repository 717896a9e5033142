"""Training a translator in a folder; the same again goes on where it was."""

from pathlib import Path

from regard.seq2seq.data import GoldLinks, PairCodec, Tokenizer
from regard.seq2seq.models.encoder_decoder import EncoderDecoder
from regard.seq2seq.objectives import CoverageObjective, GuidedAlignmentObjective, Objective
from regard.seq2seq.training import Outcome, Reporter, Validate
from regard.tasks.config.model_factories import build_model
from regard.tasks.config.translate import TranslateConfig
from regard.tasks.pairs.examples import Examples
from regard.tasks.pairs.links import AlignmentLinks, open_links
from regard.tasks.pairs.training import PairTask, train_on_pairs
from regard.tasks.translate.guided_alignment import (
    check_guided_alignment,
    guided_alignment_layer,
    is_guided,
)
from regard.tasks.translate.validation import TranslationValidator


def train(
    directory: Path | str, config: TranslateConfig, reporter: Reporter | None = None
) -> Outcome:
    """Train in a folder, or go on there."""
    check_guided_alignment(config)
    task = PairTask(codec=codec_of, model=_model, validator=_judge, links=_links)
    return train_on_pairs(task, directory, config, reporter)


def codec_of(
    config: TranslateConfig, texts: tuple[Tokenizer, Tokenizer], links: GoldLinks | None = None
) -> PairCodec:
    """Pairs to batches, as the model needs them; with links by the pairs' numbers, if given."""
    copying = getattr(config.model, "copying", False)
    return PairCodec(*texts, copying=copying, links=links, nulls=config.data.link_nulls)


def _model(config: TranslateConfig, codec: PairCodec, _: Examples) -> EncoderDecoder:
    source, target = codec.source_tokenizer, codec.target_tokenizer
    return build_model(
        config.model, len(source), len(target),
        shared=source is target,
        smoothing=config.training.smoothing, objectives=_objectives(config),
    )  # fmt: skip


def _objectives(config: TranslateConfig) -> list[Objective]:
    coverage, links = config.training.coverage, config.training.links
    found: list[Objective] = []
    if coverage:
        found.append(CoverageObjective(coverage))
    if is_guided(config):
        found.append(GuidedAlignmentObjective(links, guided_alignment_layer(config)))
    return found


def _judge(config: TranslateConfig, codec: PairCodec, examples: Examples) -> Validate:
    return TranslationValidator(examples.valid, codec, config.training.watch)


def _links(config: TranslateConfig, examples: Examples) -> AlignmentLinks | None:
    """Those that guide the training, checked; None if none do."""
    if not is_guided(config):
        return None
    found = open_links(config.data, examples.corpus)
    found.check(examples.numbers)
    return found
