"""A run's folder: what it was trained for, and its weights."""

import tomllib
from pathlib import Path

from torch import nn

from regard.seq2seq.errors import RunError
from regard.seq2seq.training import Store, load_weights

CONFIG = "run.toml"


def task_of(directory: Path | str) -> str:
    """What a run was trained for: "translate", "align"."""
    path = Path(directory) / CONFIG
    if not path.is_file():
        raise RunError(
            f"{directory} has no {CONFIG}, so it is no run. Give the folder that was --out of "
            "regard train."
        )
    with path.open("rb") as file:
        try:
            return str(tomllib.load(file).get("task", "translate"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise RunError(f"{path} cannot be read: {error}. Take another run.") from None


def check_task(directory: Path | str, needed: str, instead: str) -> None:
    """Raise if a run was trained for something else."""
    task = task_of(directory)
    if task != needed:
        raise RunError(f"{directory} was trained to {task}, not to {needed}. {instead}")


def weights_of(directory: Path | str, model: nn.Module, *, last: bool = False) -> str:
    """Give a model the best weights of a run, or its last; which these are, for people."""
    store = Store(Path(directory))
    found = store.newest() if last else store.best()
    if found is None:
        raise RunError(f"{directory} holds no checkpoint. Train first.")
    kind = "averaged weights" if load_weights(model, found) else "weights"
    about = f"{'last' if last else 'best'} {kind}, of step {found.step}"
    return "; ".join([about, *found.notes])
