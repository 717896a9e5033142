"""Recipes: configurations that were trained and measured, a TOML file each in `regard/recipes`.

A recipe begins with three comments: what it is, which `data:` it is for, and its `result:`.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from regard.seq2seq.errors import ConfigError
from regard.tasks.config.loading import parse_toml
from regard.tasks.config.merge import ConfigSource
from regard.tasks.config.wording import listed, nearest, one_line

FOLDER = Path(__file__).parents[2] / "recipes"


@dataclass(frozen=True, slots=True)
class ConfigRecipe:
    """A recipe: its configuration as a layer, and what its file says of it."""

    name: str
    task: str
    summary: str
    data: str
    result: str
    text: str


@cache
def recipes() -> dict[str, ConfigRecipe]:
    """All recipes by name.

    >>> recipes()["multi30k-bahdanau"].task
    'translate'
    """
    return {path.stem: _read(path) for path in sorted(FOLDER.glob("*.toml"))}


def _read(path: Path) -> ConfigRecipe:
    text = path.read_text(encoding="utf-8")
    summary, data, result = (line.removeprefix("#").strip() for line in text.splitlines()[:3])
    return ConfigRecipe(
        name=path.stem,
        task=str(parse_toml(path.name, text.encode()).values["task"]),
        summary=summary,
        data=data.removeprefix("data:").strip(),
        result=result.removeprefix("result:").strip(),
        text=text,
    )


def recipe_named(name: str) -> ConfigRecipe:
    """The recipe of this name; an error has the nearest."""
    found = recipes()
    if name in found:
        return found[name]
    near = nearest(name, list(found))
    hint = f"Did you mean {near}? " if near else ""
    raise ConfigError(
        one_line(f"{name:.200} is not a recipe. {hint}There is {listed(list(found))}.")
        + " List them with: regard recipes"
    )


def recipe_layer(name: str, task: str) -> ConfigSource:
    """A recipe as a layer of a task's configuration; raises if it is of another task."""
    found = recipe_named(name)
    if found.task != task:
        raise ConfigError(
            f"--recipe {name}: it is of the task {found.task}, not {task}. "
            f"Write: regard train {found.task} --recipe {name}"
        )
    return ConfigSource(f"--recipe {name}", parse_toml(name, found.text.encode()).values)
