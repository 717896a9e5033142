"""The schema of a configuration: tables, choices and kinds, from its pydantic classes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

from regard.tasks.config.options import Options, PathKey

Shape = type[Options]
"""The class of a table."""

Path = tuple[str, ...]
"""Keys from the outermost table inwards."""


def members(shape: Shape, key: str) -> tuple[Shape, ...]:
    """The tables that a key may hold: several for a choice, one for a table, none for a value."""
    if key not in shape.model_fields:
        return ()
    annotation = shape.model_fields[key].annotation
    parts = get_args(annotation) or (annotation,)
    return tuple(part for part in parts if isinstance(part, type) and issubclass(part, Options))


def kind_of(shape: Shape) -> str | None:
    """Its name in a choice; None for a table that is not a choice."""
    return shape.model_fields["kind"].default if "kind" in shape.model_fields else None


def is_choice(tables: Iterable[Shape]) -> bool:
    """Are these kinds to choose from?"""
    return any(kind_of(table) for table in tables)


def of_kind(tables: Iterable[Shape], kind: object) -> Shape | None:
    """The one of this kind, if there is one."""
    return next((table for table in tables if kind_of(table) == kind), None)


def chosen(tables: Sequence[Shape], kind: object) -> Shape | None:
    """The table of this kind in a choice; the only table if it is not a choice."""
    if is_choice(tables):
        return of_kind(tables, kind)
    return tables[0] if tables else None


def default_kind(shape: Shape, key: str) -> str | None:
    """The default kind of a choice."""
    return kind_of(type(shape.model_fields[key].get_default()))


def every_path(shape: Shape, before: Path = ()) -> Iterator[Path]:
    """All keys of all kinds."""
    for key in shape.model_fields:
        yield (*before, key)
        for table in members(shape, key):
            yield from every_path(table, (*before, key))


def path_keys(shape: Shape) -> dict[Path, PathKey]:
    """The keys that name files, with what they may name."""
    found: dict[Path, PathKey] = {}
    for key, field in shape.model_fields.items():
        for mark in field.metadata:
            if isinstance(mark, PathKey):
                found[(key,)] = mark
        for table in members(shape, key):
            found |= {(key, *path): mark for path, mark in path_keys(table).items()}
    return found


@dataclass(frozen=True, slots=True)
class Place:
    """The location of a key in a configuration."""

    path: Path
    holder: Shape
    """The table that the last key is in, of the chosen kind."""

    others: tuple[Shape, ...]
    """The kinds that the holder was chosen from; itself alone if it is no choice."""

    @property
    def key(self) -> str:
        """The last key."""
        return self.path[-1]


def place(shape: Shape, location: Sequence[str | int]) -> Place:
    """A pydantic location without the tags that it adds after every choice."""
    path: Path = ()
    holder, others = shape, _alone(shape)
    inside, kind = others, kind_of(shape)
    steps = iter(location)
    for step in steps:
        if isinstance(step, int):  # an item of a list: the list is what was given
            break
        holder, others = chosen(inside, kind) or shape, inside
        path = (*path, step)
        inside = members(holder, step)
        kind = str(next(steps, "")) if is_choice(inside) else None
    return Place(path, holder, others)


def _alone(shape: Shape) -> tuple[Shape, ...]:
    return (shape,)
