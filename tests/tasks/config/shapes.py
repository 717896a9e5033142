"""Every table of a configuration, found by walking the annotations; and any values for them."""

import typing
from collections.abc import Iterator
from types import NoneType
from typing import Any, Literal

import pytest
from hypothesis import strategies as st
from pydantic import BaseModel

from regard.tasks.config.translate import TranslateConfig

Shape = type[BaseModel]

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)

SPECIAL = {
    "device": st.sampled_from(["auto", "cpu", "cuda", "cuda:1", "mps"]),
    "kernel_size": st.integers(0, 9).map(lambda half: 2 * half + 1),
    "train": st.lists(TEXTS, max_size=2),
    "valid": st.lists(TEXTS, max_size=2),
    "fields": st.lists(TEXTS, min_size=2, max_size=2),
    "heads": st.just(3),
    "inner": st.integers(1, 99),
    "encoder_size": st.just(11),
    "state_size": st.just(22),
    "floor": st.floats(1e-9, 2),
    "alpha": st.floats(1.02, 1.98),
    "valid_share": st.floats(0.001, 0.999),
}
"""What a range of small numbers would miss, or what must fit with something else."""


def parts(annotation: Any) -> list[Any]:
    """What an annotation is made of, with all wrappers taken off."""
    if typing.get_origin(annotation) is typing.Annotated:
        return parts(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) in (typing.Union, type(int | None)):
        return [part for inner in typing.get_args(annotation) for part in parts(inner)]
    return [annotation]


def tables(annotation: Any) -> list[Shape]:
    """Those of them that are tables."""
    found = (part for part in parts(annotation) if isinstance(part, type))
    return [part for part in found if issubclass(part, BaseModel)]


def choices(
    shape: Shape = TranslateConfig, path: tuple[str, ...] = (), around: dict[str, str] | None = None
) -> Iterator[tuple[str, Shape, dict[str, str]]]:
    """Every choice of a kind: its path, the table, and the kinds to be chosen around it."""
    around = around or {}
    for key, field in shape.model_fields.items():
        here = ".".join((*path, key))
        for table in tables(field.annotation):
            within = around
            if kind := named(table):
                yield here, table, around
                within = {**around, here: kind}
            yield from choices(table, (*path, key), within)


def every_choice() -> Iterator[Any]:
    """Cases for tests; but a transformer takes hard attention only if told how it learns."""
    for path, table, around in choices():
        if not (around.get("model") == "transformer" and named(table) == "hard"):
            name = "-".join([path, named(table) or "", *around.values()])
            yield pytest.param(path, table, around, id=name)


def named(table: Shape) -> str | None:
    """Its kind."""
    return table.model_fields["kind"].default if "kind" in table.model_fields else None


def every_table() -> set[Shape]:
    """All classes of tables there are."""
    found: set[Shape] = {TranslateConfig}
    for table in iter(lambda: {t for s in found for f in s.model_fields.values()
                               for t in tables(f.annotation)} - found, set()):  # fmt: skip
        found |= table
    return found


def values(key: str, annotation: Any) -> st.SearchStrategy[Any]:
    """Any values that a key may hold; None where it is allowed."""
    if key in SPECIAL and not tables(annotation):
        return SPECIAL[key]
    return st.one_of([_of_part(part) for part in parts(annotation)])


def _of_part(part: Any) -> st.SearchStrategy[Any]:
    if typing.get_origin(part) is Literal:
        return st.sampled_from(typing.get_args(part))
    if typing.get_origin(part) is tuple:
        return st.lists(TEXTS, max_size=1)
    if isinstance(part, type) and issubclass(part, BaseModel):
        return written(part)
    simple: dict[Any, st.SearchStrategy[Any]] = {
        NoneType: st.none(),
        bool: st.booleans(),
        int: st.integers(6, 99),
        float: st.floats(1e-9, 0.999),
        str: TEXTS,
    }
    return simple[part]


def written(shape: Shape) -> st.SearchStrategy[dict[str, Any]]:
    """A table as TOML would hold it: any of its keys, its kind always."""
    drawn = {key: values(key, field.annotation) for key, field in shape.model_fields.items()}
    always = {key: drawn.pop(key) for key in ("kind", "state_size", "encoder_size", "heads")
              if key in drawn}  # fmt: skip
    if "heads" in always:
        always["size"] = st.integers(1, 40).map(lambda share: 3 * share)
        drawn.pop("size")
    return st.fixed_dictionaries(always, optional=drawn).map(_fitting)


def _fitting(table: dict[str, Any]) -> dict[str, Any]:
    """Without what is None, and so that a transformer can learn."""
    if table.get("kind") == "transformer" and table.get("selection", {}).get("kind") == "hard":
        table["selection"]["gradient"] = "gumbel"
    return {key: value for key, value in table.items() if value is not None}
