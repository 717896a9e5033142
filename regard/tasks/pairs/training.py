"""Training in a folder, on pairs of text; the same again goes on where it was."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from torch import nn

from regard.native.process import keep_heap
from regard.seq2seq.data import PairCodec, Tokenizer, plan_batches
from regard.seq2seq.errors import ConfigError, DataError
from regard.seq2seq.system.files import write_atomic
from regard.seq2seq.training import (
    Checkpoints,
    Outcome,
    Plan,
    Reporter,
    TrainingJob,
    Validate,
    run,
    seed_torch,
)
from regard.tasks.config import as_toml, check_resumable
from regard.tasks.config.align import AlignConfig
from regard.tasks.config.memory_limit import TRAINED, check_room
from regard.tasks.config.training import TokenBatches
from regard.tasks.config.translate import TranslateConfig
from regard.tasks.pairs.card import CARD, card
from regard.tasks.pairs.examples import Examples, open_examples
from regard.tasks.pairs.identity import requested, settings_of, training_options
from regard.tasks.pairs.links import AlignmentLinks
from regard.tasks.pairs.runs import CONFIG, check_task, load_config
from regard.tasks.pairs.tokenizers import fit_tokenizers, load_tokenizers, tokenizers_of

Config = TypeVar("Config", TranslateConfig, AlignConfig)


@dataclass(frozen=True, slots=True)
class PairTask(Generic[Config]):
    """What a task on pairs has of its own."""

    codec: Callable[[Config, tuple[Tokenizer, Tokenizer], AlignmentLinks | None], PairCodec]
    model: Callable[[Config, PairCodec, Examples], nn.Module]
    validator: Callable[[Config, PairCodec, Examples], Validate]
    links: Callable[[Config, Examples], AlignmentLinks | None] = lambda *_: None
    """Given alignments that guide it."""

    steps: Callable[[Config, Plan], int] = lambda config, _: config.training.steps
    """How many updates."""


def train_on_pairs(
    task: PairTask[Config], directory: Path | str, config: Config, reporter: Reporter | None = None
) -> Outcome:
    """Train in a folder, or go on there."""
    directory = Path(directory)
    begun = os.path.lexists(directory / CONFIG)
    if begun:
        check_task(directory, config.task, "Take another folder.")
        check_resumable(load_config(directory, type(config)), config)
    examples = open_examples(config.data)
    links = task.links(config, examples)
    if reporter is not None:
        for note in examples.notes:
            reporter.noted(note)
    # Tokenizers without a checkpoint are bound to nothing: they are built anew.
    trained = begun and bool(Checkpoints(directory).steps())
    kept = load_tokenizers(directory) if trained else None
    texts = fit_tokenizers(config.text, examples) if kept is None else kept.parse()
    codec = task.codec(config, texts, None)
    planned = _plan(examples, codec, config)
    seed_torch(config.training.seed, "initialisation")
    model = task.model(config, codec, examples)
    check_room(sum(parameter.numel() for parameter in model.parameters()), TRAINED)
    # Not before: a folder whose data or model were refused is no run.
    if kept is None:
        directory.mkdir(parents=True, exist_ok=True)
        kept = tokenizers_of(directory, texts)
        kept.save()
        write_atomic(directory, CONFIG, as_toml(config).encode())
    hashes = {**examples.hashes, **({} if links is None else {"links": links.digest})}
    job = TrainingJob(
        model, examples.corpus, task.codec(config, texts, links), planned,
        validate=task.validator(config, codec, examples),
        settings=settings_of(config),
        data=hashes | kept.hashes,
        asked=requested(config),
    )  # fmt: skip
    options = training_options(config.training, task.steps(config, planned))
    with keep_heap():
        outcome = run(directory, job, options, reporter)
    write_atomic(directory, CONFIG, as_toml(config).encode())
    made = card(directory, config, examples, model, outcome)
    write_atomic(directory, CARD, made.encode())
    return outcome


def _plan(examples: Examples, codec: PairCodec, config: TranslateConfig | AlignConfig) -> Plan:
    """The batches of an epoch, as numbers of the corpus."""
    sizes = [codec.sizes(examples.corpus[number]) for number in examples.numbers]
    longest = config.data.longest
    short = [place for place, size in enumerate(sizes) if max(size) <= longest]
    if len(short) < len(sizes) and config.data.on_bad_input == "error":
        place = next(place for place, size in enumerate(sizes) if max(size) > longest)
        line = examples.corpus[examples.numbers[place]].line
        raise DataError(
            f"line {line} has {max(sizes[place])} tokens, but data.longest is {longest}. Raise "
            "that, or leave such lines out: --on-bad-input skip."
        )
    if not short:
        raise ConfigError(f"no pair has at most {longest} tokens. Raise data.longest.")
    numbers, lengths = [examples.numbers[n] for n in short], [sizes[n] for n in short]
    batch, seed = config.training.batch, config.training.seed
    how = {"tokens" if isinstance(batch, TokenBatches) else "sentences": batch.size}

    def planned(epoch: int) -> list[list[int]]:
        places = plan_batches(lengths, seed=seed, epoch=epoch, **how)
        return [[numbers[place] for place in each] for each in places]

    return planned
