"""A run's folder: what it was trained for, and its weights."""

from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from torch import nn

from regard.seq2seq.data import Tokenizer
from regard.seq2seq.errors import RunError
from regard.seq2seq.system.files import read_regular
from regard.seq2seq.training import (
    Checkpoints,
    FoundCheckpoint,
    check_loaded,
    identity,
    load_weights,
)
from regard.tasks.config import TASKS, AlignConfig, ConfigSource, TranslateConfig, load, parse_toml
from regard.tasks.config.loading import LARGEST
from regard.tasks.config.wording import shortened
from regard.tasks.pairs.identity import requested, settings_of, training_options
from regard.tasks.pairs.tokenizers import load_tokenizers

CONFIG = "run.toml"

Config = TypeVar("Config", TranslateConfig, AlignConfig)


def written_config(directory: Path | str) -> ConfigSource:
    """What the configuration of a run's folder says."""
    path = Path(directory) / CONFIG
    try:
        content = read_regular(path.parent, CONFIG, limit=LARGEST)
    except (FileNotFoundError, NotADirectoryError):
        raise RunError(
            f"{directory} has no {CONFIG}, so it is no run. Give the folder that was --out of "
            "regard train."
        ) from None
    except OSError as error:
        raise RunError(f"{path}: {error.strerror}. Put the run's own back.") from error
    return parse_toml(str(path), content)


def task_of(directory: Path | str) -> str:
    """What a run was trained for: "translate", "align"."""
    layer = written_config(directory)
    task = layer.values.get("task", "translate")
    if not isinstance(task, str) or task not in TASKS:
        told = shortened(repr(task))
        raise RunError(f"{layer.origin}: task is {told}. There are {', '.join(TASKS)}.")
    return task


def check_task(directory: Path | str, needed: str, instead: str) -> None:
    """Raise if a run was trained for something else."""
    task = task_of(directory)
    if task != needed:
        raise RunError(f"{directory} was trained to {task}, not to {needed}. {instead}")


def load_config(directory: Path | str, shape: type[Config]) -> Config:
    """The configuration of a run's folder."""
    return load(shape, said=[written_config(directory)])


@dataclass(frozen=True, slots=True)
class Run(Generic[Config]):
    """A run that was trained: configuration, tokenizers and weights that belong together."""

    config: Config
    texts: tuple[Tokenizer, Tokenizer]
    found: FoundCheckpoint
    which: str
    """ "best" or "last"."""

    notes: list[str]
    """What is to be told of them."""

    def restore(self, model: nn.Module) -> str:
        """Give a model the weights; which these are, for people."""
        kind = "averaged weights" if load_weights(model, self.found) else "weights"
        about = f"{self.which} {kind}, of step {self.found.step}"
        return "; ".join([about, *self.notes])


def open_run(directory: Path | str, shape: type[Config], *, last: bool = False) -> Run[Config]:
    """A run with its best weights, or its last; raise if its files do not belong together.

    That is found out before tokenizers are parsed or a model is built: what a file says is not
    believed before.
    """
    directory = Path(directory)
    config = load_config(directory, shape)
    found = Checkpoints(directory).loaded(last=last)
    notes = found.notes + _belonging(found, config, directory)
    tokenizers = load_tokenizers(directory)
    tokenizers.check(found.record.identity.data, found.path)
    return Run(config, tokenizers.parse(), found, "last" if last else "best", notes)


def _belonging(
    found: FoundCheckpoint, config: TranslateConfig | AlignConfig, directory: Path
) -> list[str]:
    """Raise if weights were trained with another configuration; what is to be told if not."""
    options = training_options(config.training, max(1, config.training.steps))
    now = identity(options, settings_of(config), {}, requested(config))
    return check_loaded(found.record.identity, now, str(directory / CONFIG), str(found.path))
