"""Train and load runs of any task.

run.toml                  the configuration
source.json …             artifacts of the task: tokenizers, label sets
card.md                   what the model is, what it was trained on, how good it is
log.jsonl, checkpoints/   see `regard.seq2seq.training.run`
"""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.native.process import keep_heap
from regard.seq2seq.batch import Batch, Codec
from regard.seq2seq.data import plan_batches
from regard.seq2seq.errors import ConfigError, DataError, RunError
from regard.seq2seq.system.files import write_atomic
from regard.seq2seq.training import (
    Checkpoints,
    FoundCheckpoint,
    Outcome,
    Plan,
    Reporter,
    TrainingJob,
    check_loaded,
    identity,
    load_weights,
    run,
    seed_torch,
)
from regard.tasks.abilities import JoinsEnsemble, Quantizes, require
from regard.tasks.artifacts import ArtifactFiles, read_artifacts
from regard.tasks.card import CARD, card
from regard.tasks.config import TaskConfig, as_toml, check_resumable
from regard.tasks.config.ram_check import TRAINED, check_fits_in_ram
from regard.tasks.config.training import TokenBatches
from regard.tasks.examples import Examples, open_examples
from regard.tasks.registry import task_of
from regard.tasks.run_config import (
    CONFIG,
    fixed_settings,
    free_settings,
    load_config,
    task_name,
    training_options,
)
from regard.tasks.task import AnyTask, Predictor
from regard.tasks.validation import DefaultValidator


def train(directory: Path | str, config: TaskConfig, reporter: Reporter | None = None) -> Outcome:
    """Train in a folder what a configuration asks for, or resume there."""
    task, directory = task_of(config.task), Path(directory)
    task.check(config)
    begun = os.path.lexists(directory / CONFIG)
    if begun:
        _check_same_task(directory, task)
        check_resumable(load_config(directory), config)
    examples = task_examples(task, config)
    if reporter is not None:
        for note in examples.notes:
            reporter.noted(note)
    # Artifacts without a checkpoint are not bound to weights: they are fitted again.
    trained = begun and bool(Checkpoints(directory).steps())
    files = read_artifacts(directory, task.artifacts.FILES) if trained else None
    kept = (
        task.fit(config, examples)
        if files is None
        else task.artifacts.from_files(files.contents, directory)
    )
    codec = task.codec(config, kept)
    plan = _plan(examples, codec, config)
    seed_torch(config.training.seed, "initialisation")
    model = task.model(config, kept)
    task.prime(model, kept, examples)
    check_fits_in_ram(sum(parameter.numel() for parameter in model.parameters()), TRAINED)
    # Written only now: a folder whose data or model was refused is not a run.
    if files is None:
        directory.mkdir(parents=True, exist_ok=True)
        files = ArtifactFiles(directory, task.artifacts.to_files(kept))
        files.save()
        write_atomic(directory, CONFIG, as_toml(config).encode())
    validator = task.validator or partial(DefaultValidator, task)
    job = TrainingJob(
        model, examples.corpus, codec, plan,
        validate=validator(config, kept, examples.valid),
        settings=fixed_settings(config),
        data={**examples.hashes, **files.hashes},
        inference=free_settings(config),
    )  # fmt: skip
    options = training_options(config.training, task.steps(config, plan))
    with keep_heap():
        outcome = run(directory, job, options, reporter)
    write_atomic(directory, CONFIG, as_toml(config).encode())
    write_atomic(directory, CARD, card(directory, task, config, examples, model, outcome).encode())
    return outcome


def load(directory: Path | str, *, latest: bool = False, int8: bool = False) -> Predictor[Any]:
    """Load a run's predictor, with its best checkpoint; averaged weights if there are any.

        regard.load("runs/dates").predict(["3 May 1979"])[0].text

    Files of different runs are refused before artifacts are parsed or a model is built.

    Args:
        directory: What was `--out` of `regard train`.
        latest: The latest checkpoint instead of the best.
        int8: Quantize its large linear layers: faster on a CPU.
    """
    directory = Path(directory)
    config = load_config(directory)
    task = task_of(config.task)
    found = Checkpoints(directory).loaded(last=latest)
    notes = found.notes + _check_checkpoint(found, config, directory)
    files = read_artifacts(directory, task.artifacts.FILES)
    files.check(found.record.identity.data, found.path)
    kept = task.artifacts.from_files(files.contents, directory)
    model = task.model(config, kept)
    about = _restore(model, found, "latest" if latest else "best")
    predictor: Predictor[Any] = task.predictor(config, kept, model, "; ".join([about, *notes]))
    if int8:
        require(predictor, Quantizes, task.name, "--int8").quantize()
    return predictor


def load_ensemble(
    directories: Sequence[Path | str], *, latest: bool = False, int8: bool = False
) -> Predictor[Any]:
    """An ensemble of several runs: their probabilities are averaged token by token."""
    first, *others = (load(each, latest=latest, int8=int8) for each in directories)
    if others:
        name = task_name(directories[0])
        joining = require(first, JoinsEnsemble, name, "--ensemble")
        for other in others:
            joining.add_member(other)
    return first


def task_examples(task: AnyTask, config: TaskConfig) -> Examples[Any]:
    """The items that a configuration names, as its task opens them."""
    return open_examples(
        config.data, partial(task.open, config), task.group, partial(task.guide, config)
    )


def _check_same_task(directory: Path, task: AnyTask) -> None:
    name = task_name(directory)
    if name != task.name:
        raise RunError(
            f"{directory} was trained to {name}, not to {task.name}. Take another folder."
        )


def _check_checkpoint(found: FoundCheckpoint, config: TaskConfig, directory: Path) -> list[str]:
    """Raise if the weights were trained with another configuration; else notes on changes."""
    options = training_options(config.training, max(1, config.training.steps))
    now = identity(options, fixed_settings(config), {}, free_settings(config))
    return check_loaded(found.record.identity, now, str(directory / CONFIG), str(found.path))


def _restore(model: nn.Module, found: FoundCheckpoint, which: str) -> str:
    """Load the weights; returns a description of them."""
    with torch.no_grad():
        kind = "averaged weights" if load_weights(model, found) else "weights"
    return f"{which} {kind}, of step {found.step}"


def _plan(examples: Examples[Any], codec: Codec[Any, Batch], config: TaskConfig) -> Plan:
    """The batches of an epoch, as numbers of the corpus."""
    sizes = [codec.sizes(item) for item in examples.items()]
    longest = config.data.longest
    short = [place for place, size in enumerate(sizes) if max(size) <= longest]
    if len(short) < len(sizes) and config.data.on_bad_input == "error":
        place = next(place for place, size in enumerate(sizes) if max(size) > longest)
        raise DataError(
            f"{examples.corpus.where(examples.numbers[place])} has {max(sizes[place])} tokens, "
            f"but data.longest is {longest}. Raise it, or skip such items: --on-bad-input skip."
        )
    if not short:
        raise ConfigError(f"no item has at most {longest} tokens. Raise data.longest.")
    numbers, lengths = [examples.numbers[n] for n in short], [sizes[n] for n in short]
    batch, seed = config.training.batch, config.training.seed
    limit = {"tokens" if isinstance(batch, TokenBatches) else "sentences": batch.size}

    def plan(epoch: int) -> list[list[int]]:
        places = plan_batches(lengths, seed=seed, epoch=epoch, **limit)
        return [[numbers[place] for place in each] for each in places]

    return plan
