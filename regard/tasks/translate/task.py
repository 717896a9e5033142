"""The task: pairs of text, an encoder–decoder with attention, BLEU, attention maps."""

from collections.abc import Iterator, Sequence

from regard.seq2seq.batch import Corpus, Fault
from regard.seq2seq.data import Pair, PairCodec, read_lines
from regard.seq2seq.models.encoder_decoder import EncoderDecoder
from regard.seq2seq.objectives import CoverageObjective, GuidedAlignmentObjective, Objective
from regard.seq2seq.training import Validate
from regard.tasks.config.model_factories import build_model
from regard.tasks.config.translate import TranslateConfig
from regard.tasks.examples import Examples
from regard.tasks.pairs.links import LinkedPairs
from regard.tasks.pairs.opening import (
    open_gold_pairs,
    open_pair_files,
    open_source_file,
    unseen_characters,
)
from regard.tasks.pairs.tokenizers import PairTokenizers, fit_tokenizers
from regard.tasks.task import Task
from regard.tasks.translate.guided_alignment import (
    check_guided_alignment,
    guided_alignment_layer,
    is_guided,
)
from regard.tasks.translate.translator import Translator
from regard.tasks.translate.validation import TranslationValidator


def _guide(config: TranslateConfig, corpus: Corpus[Pair]) -> Corpus[Pair]:
    if not is_guided(config):
        return corpus
    return LinkedPairs(corpus, read_lines(config.data.links[0]), config.data.link_units)


def _fit(config: TranslateConfig, examples: Examples[Pair]) -> PairTokenizers:
    return fit_tokenizers(config.text, examples)


def _codec(config: TranslateConfig, kept: PairTokenizers) -> PairCodec:
    copying = getattr(config.model, "copying", False)
    return PairCodec(kept.source, kept.target, copying=copying, nulls=config.data.link_nulls)


def _model(config: TranslateConfig, kept: PairTokenizers) -> EncoderDecoder:
    return build_model(
        config.model, len(kept.source), len(kept.target),
        shared=kept.source is kept.target,
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


def _predictor(
    config: TranslateConfig, kept: PairTokenizers, model: EncoderDecoder, about: str
) -> Translator:
    return Translator(model, _codec(config, kept), config, about)


def _validator(config: TranslateConfig, kept: PairTokenizers, valid: Sequence[Pair]) -> Validate:
    return TranslationValidator(valid, _codec(config, kept), config.training.watch)


def _between(
    config: TranslateConfig, train: Sequence[Pair], valid: Sequence[Pair]
) -> Iterator[Fault]:
    return unseen_characters(config.data, train, valid)


TASK = Task(
    name="translate",
    config=TranslateConfig,
    artifacts=PairTokenizers,
    describe=lambda config: (
        f"A translator of kind `{config.model.kind}` over `{config.text.kind}` tokens"
    ),
    usage="regard predict {} input.txt",
    scores_note="BLEU and exact matches are of greedy answers; `regard evaluate` gives them with "
    "intervals and signatures, on a test set that no checkpoint was selected by.",
    packages=("sacrebleu",),
    check=check_guided_alignment,
    open=lambda config, paths: open_pair_files(config.data, paths),
    gold=lambda config, paths: open_gold_pairs(config.data, paths),
    inputs=lambda config, path: open_source_file(config.data, path),
    given=lambda _, text, target: Pair(text, target, 1),
    group=lambda pair: pair.source,
    guide=_guide,
    between=_between,
    fit=_fit,
    codec=_codec,
    model=_model,
    predictor=_predictor,
    validator=_validator,
)
