"""Options of verbs that need a configuration: a task, files, settings."""

import os
from collections.abc import Sequence
from typing import Annotated

import typer

from regard.seq2seq.errors import DataError
from regard.tasks.config import ConfigSource, TaskConfig, load, recipe_layer, setting
from regard.tasks.config.schema import path_keys
from regard.tasks.config.wording import nearest
from regard.tasks.registry import config_type, entries

TaskArgument = Annotated[str, typer.Argument(help=f"The task: {', '.join(entries())}.")]
Data = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        metavar="FILE",
        help="Training files; for pairs TSV or JSONL, or two parallel files.",
    ),
]
Valid = Annotated[
    list[str] | None,
    typer.Option("--valid", metavar="FILE", help="Validation files; by default a share of --data."),
]
GivenLinks = Annotated[
    list[str] | None,
    typer.Option(
        "--links",
        metavar="FILE",
        help="Alignments of --data for guided alignment, a line of 0-0 1-2 each.",
    ),
]
Config = Annotated[
    str | None, typer.Option("--config", metavar="FILE", help="A TOML file of settings.")
]
Recipe = Annotated[
    str | None,
    typer.Option("--recipe", metavar="NAME", help="Start from a recipe: see regard recipes."),
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
    recipe: str | None = None,
    path: str | None = None,
    data: Sequence[str] | None = None,
    valid: Sequence[str] | None = None,
    links: Sequence[str] | None = None,
    settings: Sequence[str] | None = None,
) -> TaskConfig:
    """The task's configuration from the command line."""
    shape = config_type(task)
    marks, files = path_keys(shape), []
    for option, key, given in (
        ("--data", "train", data),
        ("--valid", "valid", valid),
        ("--links", "links", links),
    ):
        if given:
            mark = marks.get(("data", key))
            check_exist(option, given, folders=mark is not None and mark.folders)
            files.append(ConfigSource(option, {"data": {key: list(given)}}))
    overrides = [*files, *(setting(text) for text in settings or ())]
    base = None if recipe is None else recipe_layer(recipe, task)
    return load(shape, recipe=base, path=path, overrides=overrides)


def check_exist(option: str, paths: Sequence[str], *, folders: bool = False) -> None:
    """Raise if one of them does not exist, or is a folder where a file is needed."""
    for path in paths:
        if os.path.isdir(path) and not folders:
            raise DataError(f"{option} {path}: this is a folder. Give a file.")
        if path != "-" and not os.path.exists(path):
            raise DataError(f"{option} {path}: no such file.{_suggestion(path)}")


def _suggestion(path: str) -> str:
    folder, name = os.path.split(path)
    try:
        near = nearest(name, sorted(os.listdir(folder or ".")))
    except OSError:
        return f" There is no folder {folder} either."
    return f" Did you mean {os.path.join(folder, near)}?" if near else ""
