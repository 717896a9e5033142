"""Records: slotted dataclasses that are pytrees.

A read becomes plain data before a kernel gets it. As pytrees, records pass through
`torch.func.vmap`, `torch.compile` and distributed wrappers as the tensors they hold.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform

from torch import Tensor
from torch.utils import _pytree

R = TypeVar("R")


def static(**options: Any) -> Any:
    """A field that is part of the tree's structure: compared, never mapped over."""
    return dataclasses.field(metadata={"static": True}, **options)


def cache_field(*, init: bool = False, **default: Any) -> Any:
    """A field that caches what was computed of the others: each copy starts from its default."""
    return dataclasses.field(init=init, metadata={"cache": True}, **default)


@dataclass_transform(field_specifiers=(static, cache_field, dataclasses.field))
def record(cls: type[R]) -> type[R]:
    """Make `cls` a slotted dataclass and a pytree; an `__init__` that it defines stays."""
    own_init = "__init__" in cls.__dict__
    made = dataclasses.dataclass(slots=True, eq=False, init=not own_init)(cls)
    fields = dataclasses.fields(made)  # type: ignore[arg-type]  # mypy does not see the decorator
    children_names = tuple(field.name for field in fields if not field.metadata)
    static_names = tuple(field.name for field in fields if field.metadata.get("static"))
    caches = {field.name: _factory(field) for field in fields if field.metadata.get("cache")}
    names = tuple(field.name for field in fields if field.name not in caches)
    made.__record__ = {"fields": names, "caches": caches}  # type: ignore[attr-defined]

    def flatten(item: Any) -> tuple[list[Any], Any]:
        # None is left out: vmap would take it for a leaf, and refuse it.
        present = [name for name in children_names if getattr(item, name) is not None]
        context = [(name, getattr(item, name)) for name in static_names]
        return [getattr(item, name) for name in present], (present, context)

    def unflatten(children: Any, context: Any) -> Any:
        # Not through __init__: the fields are already what __init__ made of its arguments.
        item = object.__new__(made)
        present, constants = context
        for name, value in [*((name, None) for name in children_names), *constants]:
            setattr(item, name, value)
        for name, make in caches.items():
            setattr(item, name, make())
        for name, value in zip(present, children, strict=True):
            setattr(item, name, value)
        return item

    _pytree.register_pytree_node(made, flatten, unflatten)
    return made


def _factory(field: dataclasses.Field[Any]) -> Callable[[], Any]:
    """Makes the default of a field."""
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory
    return lambda: field.default


def replace(item: R, **fields: Any) -> R:
    """A copy of a record with some fields replaced."""
    copy = object.__new__(type(item))
    names = _names(item)
    assert fields.keys() <= set(names), f"{type(item).__name__} has only {', '.join(names)}"
    for name in names:
        setattr(copy, name, fields[name] if name in fields else getattr(item, name))
    for name, make in type(item).__record__["caches"].items():  # type: ignore[attr-defined]
        setattr(copy, name, make())
    return copy


def tree_map(item: R, change: Callable[[Tensor], Tensor]) -> R:
    """A copy of a record with `change` applied to each tensor in it, however deep."""
    fields = {name: _tree_map(getattr(item, name), change) for name in _names(item)}
    return replace(item, **fields)


def tensors(item: object) -> list[Tensor]:
    """The tensors that a record holds itself."""
    names = _names(item)
    return [value for name in names if isinstance(value := getattr(item, name), Tensor)]


def deep_tensors(item: object) -> list[Tensor]:
    """The tensors that a record holds, however deep."""
    found: list[Tensor] = []
    for name in _names(item):
        value = getattr(item, name)
        if isinstance(value, Tensor):
            found.append(value)
        elif dataclasses.is_dataclass(value):
            found += deep_tensors(value)
    return found


def version(tensor: Tensor) -> int:
    """How often a tensor was changed in place; 0 for inference tensors, which do not count it."""
    try:
        return tensor._version
    except RuntimeError:
        return 0


def _tree_map(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, dict):
        return {name: _tree_map(part, change) for name, part in value.items()}
    return tree_map(value, change) if dataclasses.is_dataclass(value) else value


def _names(item: object) -> tuple[str, ...]:
    return type(item).__record__["fields"]  # type: ignore[attr-defined]
