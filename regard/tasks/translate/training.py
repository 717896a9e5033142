"""Training a translator in a folder; the same again goes on where it was."""

from pathlib import Path
from typing import Any

from regard.attention.kernels import kept_heap
from regard.seq2seq.data import PairCodec, plan
from regard.seq2seq.errors import ConfigError, DataError
from regard.seq2seq.training import Job, Outcome, Plan, Reporter, TrainingOptions, run, settle
from regard.tasks.config import as_toml, check_resumable, load
from regard.tasks.config.models import build_model
from regard.tasks.config.training import Tokens, Training
from regard.tasks.config.translate import Translate
from regard.tasks.translate.card import CARD, card
from regard.tasks.translate.examples import Examples, open_examples
from regard.tasks.translate.files import keep_text
from regard.tasks.translate.judging import Judge
from regard.tasks.translate.texts import codec_of, keep_texts, kept_texts, new_texts

CONFIG = "run.toml"
SCHEDULES = {"none": "constant", "cosine": "cosine", "inverse_root": "inverse_root"}


def train(directory: Path | str, config: Translate, reporter: Reporter | None = None) -> Outcome:
    """Train in a folder, or go on there."""
    directory = Path(directory)
    begun = (directory / CONFIG).exists()
    if begun:
        check_resumable(load(Translate, path=str(directory / CONFIG)), config)
    examples = open_examples(config.data)
    if reporter is not None:
        for note in examples.notes:
            reporter.noted(note)
    texts = kept_texts(directory) if begun else new_texts(config.text, examples)
    codec = codec_of(config, texts)
    planned = _plan(examples, codec, config)
    # Not before: a folder whose data were refused is no run.
    if not begun:
        directory.mkdir(parents=True, exist_ok=True)
        keep_texts(directory, texts)
        keep_text(directory / CONFIG, as_toml(config))
    settle(config.training.seed, "initialisation")
    model = build_model(
        config.model, len(texts[0]), len(texts[1]),
        shared=texts[0] is texts[1],
        smoothing=config.training.smoothing, coverage=config.training.coverage,
    )  # fmt: skip
    job = Job(
        model, examples.corpus, codec, planned,
        validate=Judge(examples.valid, codec, config.training.watch),
        settings=_fixed(config), data=examples.hashes,
    )  # fmt: skip
    with kept_heap():
        outcome = run(directory, job, training_options(config.training), reporter)
    keep_text(directory / CONFIG, as_toml(config))
    keep_text(directory / CARD, card(directory, config, examples, model, outcome))
    return outcome


def training_options(given: Training) -> TrainingOptions:
    """How the loop is told."""
    names = (
        "steps", "save_every", "validate_every", "keep", "patience", "seed",
        "rate", "warmup", "clip", "ema", "accumulate", "watch", "autocast", "threads", "device",
    )  # fmt: skip
    options: dict[str, Any] = {name: getattr(given, name) for name in names}
    options |= {"decay": given.weight_decay, "maximise": given.watch != "loss"}
    return TrainingOptions(schedule=SCHEDULES[given.decay], **options)  # type: ignore[arg-type]


def _plan(examples: Examples, codec: PairCodec, config: Translate) -> Plan:
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


def _fixed(config: Translate) -> dict[str, Any]:
    """What makes a run this run, beside how it is trained."""
    whole = config.model_dump(mode="json", include={"text", "model"})
    training, data = config.training, config.data
    whole["batch"] = training.batch.model_dump(mode="json")
    whole["smoothing"], whole["coverage"] = training.smoothing, training.coverage
    whole["longest"], whole["on_bad_input"] = data.longest, data.on_bad_input
    return whole
