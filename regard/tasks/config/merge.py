"""Merges the sources of a configuration: defaults, then a file, then the command line."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from regard.tasks.config.schema import (
    Path,
    Shape,
    chosen,
    default_kind,
    is_choice,
    members,
)

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ConfigSource:
    """Some keys with their values, and where they come from."""

    origin: str
    """As an error names it: "run.toml", "--set training.steps=0"."""

    values: Values

    def reaches(self, path: Path) -> bool:
        """Does it set anything there?"""
        at: object = self.values
        for key in path:
            if not isinstance(at, Mapping) or key not in at:
                return False
            at = at[key]
        return True


def merge(layers: Sequence[Values], shape: Shape) -> dict[str, Any]:
    """Later layers override earlier ones; kinds that no layer sets are still missing.

    Merged from the last to the first, so that an option without a kind applies to whichever kind a
    later layer sets, and is not dropped with the earlier kind.
    """
    found: dict[str, Any] = {}
    for layer in reversed(layers):
        found = _under(found, _expand_kinds(layer, (shape,)))
    return found


def _expand_kinds(values: Values, shapes: tuple[Shape, ...]) -> dict[str, Any]:
    """The same with `score = "dot"` written as `score = {kind = "dot"}`.

    The kind of a table is not known before all layers are merged: all kinds are considered.
    """
    found: dict[str, Any] = {}
    for key, value in values.items():
        inside = tuple(table for shape in shapes for table in members(shape, key))
        named = {"kind": value} if is_choice(inside) and isinstance(value, str) else value
        found[key] = _expand_kinds(named, inside) if isinstance(named, Mapping) else named
    return found


def _under(upper: Values, lower: Values) -> dict[str, Any]:
    found = {**lower, **upper}
    for key in upper.keys() & lower.keys():
        above, below = upper[key], lower[key]
        tables = isinstance(above, Mapping) and isinstance(below, Mapping)
        if tables and not _differs_in_kind(above, below):
            found[key] = _under(above, below)
    return found


def _differs_in_kind(new: Values, old: Values) -> bool:
    """Is it of another kind, which does not have the old one's options?"""
    return "kind" in old and "kind" in new and old["kind"] != new["kind"]


def with_kinds(values: Values, shape: Shape) -> dict[str, Any]:
    """The same, with the default's kind wherever options were given but no kind was."""
    found = dict(values)
    for key, value in values.items():
        inside = members(shape, key)
        if not inside or not isinstance(value, Mapping):
            continue
        table = dict(value)
        if is_choice(inside):
            table.setdefault("kind", default_kind(shape, key))
        within = chosen(inside, table.get("kind"))
        found[key] = table if within is None else with_kinds(table, within)
    return found


def origin(layers: Iterable[ConfigSource], path: Path) -> str | None:
    """The source of a value: the last layer that sets it or the nearest table above."""
    last_first = list(layers)[::-1]
    for depth in range(len(path), 0, -1):
        for layer in last_first:
            if layer.reaches(path[:depth]):
                return layer.origin
    return None
