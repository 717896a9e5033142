"""What verbs that need a configuration have in common: a task, files, settings."""

import os
from collections.abc import Sequence
from typing import Annotated

import typer

from regard.seq2seq.errors import ConfigError, DataError
from regard.tasks.config import TASKS, ConfigSource, Options, load, setting
from regard.tasks.config.wording import listed, nearest

Task = Annotated[str, typer.Argument(help=f"What is learned: {', '.join(TASKS)}.")]
Data = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        metavar="FILE",
        help="Pairs to learn from: TSV or JSONL; given twice, two files line by line.",
    ),
]
Valid = Annotated[
    list[str] | None,
    typer.Option(
        "--valid", metavar="FILE", help="The same to validate on, instead of a share of --data."
    ),
]
GivenLinks = Annotated[
    list[str] | None,
    typer.Option(
        "--links", metavar="FILE", help="Links of --data, a line of 0-0 1-2 each: guide attention."
    ),
]
Config = Annotated[
    str | None, typer.Option("--config", metavar="FILE", help="A TOML file to begin with.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Set a key, as in training.steps=300; may be repeated."
    ),
]


def config_options(
    task: str,
    *,
    path: str | None = None,
    data: Sequence[str] | None = None,
    valid: Sequence[str] | None = None,
    links: Sequence[str] | None = None,
    settings: Sequence[str] | None = None,
) -> Options:
    """The task's configuration as the command line says."""
    files = [
        ConfigSource(f"--{option}", {"data": {key: found(f"--{option}", given)}})
        for option, key, given in (
            ("data", "train", data),
            ("valid", "valid", valid),
            ("links", "links", links),
        )
        if given
    ]
    said = [*files, *(setting(text) for text in settings or ())]
    return load(shape_of(task), path=path, said=said)


def shape_of(task: str) -> type[Options]:
    """The configuration of a task."""
    if task in TASKS:
        return TASKS[task]
    near = nearest(task, list(TASKS))
    meant = f"Did you mean {near}? " if near else ""
    raise ConfigError(f"{task} is no task. {meant}There is {listed(list(TASKS))}.")


def found(option: str, paths: Sequence[str]) -> list[str]:
    """The same paths; raise if one leads nowhere."""
    for path in paths:
        if os.path.isdir(path):
            raise DataError(f"{option} {path}: this is a folder. Give a file.")
        if path != "-" and not os.path.exists(path):
            raise DataError(f"{option} {path}: no such file.{_instead(path)}")
    return list(paths)


def _instead(path: str) -> str:
    folder, name = os.path.split(path)
    try:
        near = nearest(name, sorted(os.listdir(folder or ".")))
    except OSError:
        return f" There is no folder {folder} either."
    return f" Did you mean {os.path.join(folder, near)}?" if near else ""
