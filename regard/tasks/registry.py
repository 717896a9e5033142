"""The registry of tasks. Imports are lazy: help must not wait for torch.

Another package adds a task by an entry point of the group `regard.tasks`, whose name is the task's
and whose value is a `TaskEntry`:

    [project.entry-points."regard.tasks"]
    rhyme = "rhymes.entry:ENTRY"    # ENTRY = TaskEntry("rhymes.config:Config", "rhymes.task:TASK")
"""

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from regard.seq2seq.errors import ConfigError
from regard.tasks.config.options import Options
from regard.tasks.config.schema import members
from regard.tasks.config.task import TaskConfig
from regard.tasks.config.wording import listed, nearest

if TYPE_CHECKING:
    from regard.tasks.task import AnyTask

GROUP = "regard.tasks"


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """Where a task is: "module:name" of its configuration, which needs no torch, and of itself."""

    config: str
    task: str


TASKS = {
    "translate": TaskEntry(
        "regard.tasks.config.translate:TranslateConfig", "regard.tasks.translate:TASK"
    ),
    "align": TaskEntry("regard.tasks.config.align:AlignConfig", "regard.tasks.align:TASK"),
    "tag": TaskEntry("regard.tasks.config.tag:TagConfig", "regard.tasks.tag:TASK"),
}


@cache
def entries() -> dict[str, TaskEntry]:
    """All tasks by name: built-in ones, then those of other packages."""
    found = dict(TASKS)
    for point in entry_points(group=GROUP):
        if point.name in found:
            raise ConfigError(
                f"the entry point {point.value} adds a task {point.name}, which there is already. "
                "Uninstall one of the two packages."
            )
        entry = point.load()
        if not isinstance(entry, TaskEntry):
            raise ConfigError(f"the entry point {point.value} of {GROUP} is not a TaskEntry.")
        found[point.name] = entry
    return found


def entry_of(name: str) -> TaskEntry:
    """The task of this name."""
    found = entries()
    if name in found:
        return found[name]
    near = nearest(name, list(found))
    hint = f"Did you mean {near}? " if near else ""
    raise ConfigError(f"{name} is not a task. {hint}There is {listed(list(found))}.")


@cache
def config_type(name: str) -> type[TaskConfig]:
    """The configuration of a task."""
    config = _resolve(entry_of(name).config)
    if not (isinstance(config, type) and issubclass(config, TaskConfig)):
        raise ConfigError(f"the configuration of {name} is not a TaskConfig.")
    for missing in undocumented(config):
        raise ConfigError(f"the configuration of {name} has no docstring for {missing}. Add one.")
    return config


@cache
def task_of(name: str) -> "AnyTask":
    """The task itself, which needs torch."""
    from regard.tasks.task import Task  # noqa: PLC0415  # torch: help need not wait

    task = _resolve(entry_of(name).task)
    if not isinstance(task, Task):
        raise ConfigError(f"the task {name} is not a Task.")
    return task


def undocumented(shape: type[Options]) -> Iterator[str]:
    """Tables and keys without a docstring, which `regard init` could not explain."""
    if not shape.__doc__:
        yield shape.__name__
    for key, field in shape.model_fields.items():
        if key != "kind" and not field.description:
            yield f"{shape.__name__}.{key}"
        for table in members(shape, key):
            yield from undocumented(table)


def _resolve(reference: str) -> Any:
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)
