"""Layers of a configuration: defaults, then a file, then what the command line says."""

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
    """Some keys with their values, and who gave them."""

    origin: str
    """As an error names it: "run.toml", "--set training.steps=0"."""

    values: Values

    def reaches(self, path: Path) -> bool:
        """Does it say anything there?"""
        at: object = self.values
        for key in path:
            if not isinstance(at, Mapping) or key not in at:
                return False
            at = at[key]
        return True


def merge(layers: Sequence[Values], shape: Shape) -> dict[str, Any]:
    """Later layers over earlier ones; kinds that nobody has named are still missing.

    Taken from the last to the first, so that an option given without a kind goes with whichever
    kind is named later, and is not lost with the kind that it happened to be laid upon.
    """
    found: dict[str, Any] = {}
    for layer in reversed(layers):
        found = _under(found, _spelt(layer, (shape,)))
    return found


def _spelt(values: Values, shapes: tuple[Shape, ...]) -> dict[str, Any]:
    """The same with `score = "dot"` written as `score = {kind = "dot"}`.

    Which kind a table will be is not known before all layers are: all of them are looked at.
    """
    found: dict[str, Any] = {}
    for key, value in values.items():
        inside = tuple(table for shape in shapes for table in members(shape, key))
        named = {"kind": value} if is_choice(inside) and isinstance(value, str) else value
        found[key] = _spelt(named, inside) if isinstance(named, Mapping) else named
    return found


def _under(upper: Values, lower: Values) -> dict[str, Any]:
    found = {**lower, **upper}
    for key in upper.keys() & lower.keys():
        above, below = upper[key], lower[key]
        tables = isinstance(above, Mapping) and isinstance(below, Mapping)
        if tables and not _another(above, below):
            found[key] = _under(above, below)
    return found


def _another(new: Values, old: Values) -> bool:
    """Is it of another kind, for which the old one's options mean nothing?"""
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
    """Who said what is there: the last one that comes nearest to it."""
    last_first = list(layers)[::-1]
    for depth in range(len(path), 0, -1):
        for layer in last_first:
            if layer.reaches(path[:depth]):
                return layer.origin
    return None
