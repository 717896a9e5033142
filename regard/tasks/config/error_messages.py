"""Error messages of an invalid configuration: one sentence, with its cure."""

from collections.abc import Mapping, Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from regard.tasks.config.ranges import allowed_texts, needed
from regard.tasks.config.schema import (
    Path,
    Place,
    Shape,
    every_path,
    is_choice,
    kind_of,
    members,
    place,
)
from regard.tasks.config.toml import as_value
from regard.tasks.config.wording import dotted, listed, nearest, shortened


def error_message(shape: Shape, error: ValidationError) -> tuple[Path, str]:
    """The path of the first error, and its message."""
    first = error.errors(include_url=False)[0]
    where = place(shape, first["loc"])
    if first["type"] == "extra_forbidden":
        return where.path, _unknown(shape, where)
    inside = members(where.holder, where.key)
    if first["type"] == "value_error" and inside:
        return where.path, f"{dotted(where.path)}: {first['ctx']['error']}"
    if is_choice(inside):
        return where.path, _no_kind(where, inside, first["input"])
    if inside:
        return where.path, _no_table(where, inside[0], first["input"])
    return where.path, _wrong_value(where, first)


def _unknown(shape: Shape, where: Place) -> str:
    """A key that the chosen kind does not have: another kind may, or another table."""
    key, table = where.key, dotted(where.path[:-1])
    kind = kind_of(where.holder)
    who = f"{table}: {kind}" if kind else table or "a configuration"
    if owners := _owners(where, key):
        return f"{who} has no {key}; {owners}"
    keys = list(where.holder.model_fields)
    if near := nearest(key, keys):
        return f"{who} has no {key}. Did you mean {dotted((*where.path[:-1], near))}?"
    if elsewhere := {dotted(path) for path in every_path(shape) if path[-1] == key}:
        return f"{who} has no {key}. Did you mean {listed(sorted(elsewhere), 'or')}?"
    others = [name for other in where.others for name in other.model_fields]
    if (near := nearest(key, others)) and (owners := _owners(where, near)):
        return f"{who} has no {key}, nor {near}; {owners}"
    return f"{who} has no {key}. There {'are' if keys[1:] else 'is'} {listed(keys)}."


def _owners(where: Place, key: str) -> str:
    """Which other kinds have the key, and what to do about it; empty if none has."""
    kinds = [kind_of(other) or "" for other in where.others if key in other.model_fields]
    if not kinds:
        return ""
    have = "has" if len(kinds) == 1 else "have"
    choice = dotted((*where.path[:-1], "kind"))
    return f'{listed(kinds)} {have}. Choose {choice} = "{kinds[0]}", or leave {key} out.'


def _no_kind(where: Place, kinds: Sequence[Shape], given: object) -> str:
    path = dotted(where.path)
    names = [kind_of(table) or "" for table in kinds]
    if not isinstance(given, Mapping):
        return f"{path} is {_shown(given)}. Give one of {listed(names, 'or')}."
    kind = given.get("kind")
    return f"{path}.kind is {_shown(kind)}. {_suggestion(kind, names)}There are {listed(names)}."


def _no_table(where: Place, table: Shape, given: object) -> str:
    keys = list(table.model_fields)
    return (
        f"{dotted(where.path)} is {_shown(given)}, but it is a table. "
        f"Set keys in it: {listed(keys, 'or')}."
    )


def _wrong_value(where: Place, error: ErrorDetails) -> str:
    """A value of the wrong type, or out of range."""
    is_ = "holds" if isinstance(error["loc"][-1], int) else "is"
    given = f"{dotted(where.path)} {is_} {_shown(error['input'])}."
    if error["type"] == "value_error":
        return f"{given} {error['ctx']['error']}"
    field = where.holder.model_fields[where.key]
    return f"{given} {_suggestion(error['input'], allowed_texts(field))}Give {needed(field)}."


def _suggestion(given: object, names: Sequence[str]) -> str:
    near = nearest(given, names) if isinstance(given, str) else None
    return f'Did you mean "{near}"? ' if near else ""


def _shown(given: object) -> str:
    return shortened(as_value(given))
