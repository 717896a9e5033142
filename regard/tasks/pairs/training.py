"""Training in a folder, on pairs of text; the same again goes on where it was."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from torch import nn

from regard.attention.kernels import kept_heap
from regard.seq2seq.data import PairCodec, Text, plan
from regard.seq2seq.errors import ConfigError, DataError
from regard.seq2seq.training import (
    Job,
    Outcome,
    Plan,
    Reporter,
    TrainingOptions,
    Validate,
    run,
    settle,
)
from regard.tasks.config import as_toml, check_resumable, load
from regard.tasks.config.align import Align
from regard.tasks.config.training import Learning, Tokens
from regard.tasks.config.translate import Translate
from regard.tasks.pairs.card import CARD, card
from regard.tasks.pairs.examples import Examples, open_examples
from regard.tasks.pairs.files import keep_text
from regard.tasks.pairs.links import GivenLinks
from regard.tasks.pairs.runs import CONFIG, check_task
from regard.tasks.pairs.texts import keep_texts, kept_texts, new_texts

SCHEDULES = {"none": "constant", "cosine": "cosine", "inverse_root": "inverse_root"}

Config = TypeVar("Config", Translate, Align)


@dataclass(frozen=True, slots=True)
class Task(Generic[Config]):
    """What a task on pairs has of its own."""

    codec: Callable[[Config, tuple[Text, Text], GivenLinks | None], PairCodec]
    model: Callable[[Config, PairCodec, Examples], nn.Module]
    judge: Callable[[Config, PairCodec, Examples], Validate]
    fixed: Callable[[Config], Mapping[str, Any]]
    """What of its training makes a run this run, beside what the loop is told."""

    links: Callable[[Config, Examples], GivenLinks | None] = lambda *_: None
    """Given alignments that guide it."""

    steps: Callable[[Config, Plan], int] = lambda config, _: config.training.steps
    """How many updates."""


def train_on_pairs(
    task: Task[Config], directory: Path | str, config: Config, reporter: Reporter | None = None
) -> Outcome:
    """Train in a folder, or go on there."""
    directory = Path(directory)
    begun = (directory / CONFIG).exists()
    if begun:
        check_task(directory, config.task, "Take another folder.")
        check_resumable(load(type(config), path=str(directory / CONFIG)), config)
    examples = open_examples(config.data)
    links = task.links(config, examples)
    if reporter is not None:
        for note in examples.notes:
            reporter.noted(note)
    texts = kept_texts(directory) if begun else new_texts(config.text, examples)
    codec = task.codec(config, texts, None)
    planned = _plan(examples, codec, config)
    # Not before: a folder whose data were refused is no run.
    if not begun:
        directory.mkdir(parents=True, exist_ok=True)
        keep_texts(directory, texts)
        keep_text(directory / CONFIG, as_toml(config))
    settle(config.training.seed, "initialisation")
    model = task.model(config, codec, examples)
    job = Job(
        model, examples.corpus, task.codec(config, texts, links), planned,
        validate=task.judge(config, codec, examples),
        settings={**_fixed(config), **task.fixed(config)},
        data={**examples.hashes, **({} if links is None else {"links": links.digest})},
    )  # fmt: skip
    options = training_options(config.training, task.steps(config, planned))
    with kept_heap():
        outcome = run(directory, job, options, reporter)
    keep_text(directory / CONFIG, as_toml(config))
    keep_text(directory / CARD, card(directory, config, examples, model, outcome))
    return outcome


def training_options(given: Learning, steps: int) -> TrainingOptions:
    """How the loop is told, with so many updates."""
    names = (
        "save_every", "validate_every", "keep", "patience", "seed",
        "rate", "warmup", "clip", "ema", "accumulate", "autocast", "threads", "device",
    )  # fmt: skip
    options: dict[str, Any] = {name: getattr(given, name) for name in names}
    watch = getattr(given, "watch", "loss")
    options |= {"decay": given.weight_decay, "watch": watch, "maximise": watch != "loss"}
    return TrainingOptions(steps=steps, schedule=SCHEDULES[given.decay], **options)  # type: ignore[arg-type]


def _plan(examples: Examples, codec: PairCodec, config: Translate | Align) -> Plan:
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
    how = {"tokens" if isinstance(batch, Tokens) else "sentences": batch.size}

    def planned(epoch: int) -> list[list[int]]:
        places = plan(lengths, seed=seed, epoch=epoch, **how)
        return [[numbers[place] for place in each] for each in places]

    return planned


def _fixed(config: Translate | Align) -> dict[str, Any]:
    """What makes a run this run, beside how it is trained."""
    whole = config.model_dump(mode="json", include={"text", "model"})
    whole["batch"] = config.training.batch.model_dump(mode="json")
    whole["longest"], whole["on_bad_input"] = config.data.longest, config.data.on_bad_input
    return whole
