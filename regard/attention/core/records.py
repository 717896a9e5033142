"""Records: slotted dataclasses that torch can see through.

A read becomes plain data before a kernel sees it. Registered as pytrees, records pass through
`torch.func.vmap`, `torch.compile` and distributed wrappers as the tensors they hold.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform

from torch import Tensor
from torch.utils import _pytree

R = TypeVar("R")


def static(**options: Any) -> Any:
    """A field that is not data: compared, never mapped over."""
    return dataclasses.field(metadata={"static": True}, **options)


def cache_field(*, init: bool = False, **default: Any) -> Any:
    """A field for what was found out about the others: each copy begins with its default."""
    return dataclasses.field(init=init, metadata={"memo": True}, **default)


@dataclass_transform(field_specifiers=(static, cache_field, dataclasses.field))
def record(cls: type[R]) -> type[R]:
    """Make `cls` a slotted dataclass and a pytree; an `__init__` of its own is kept."""
    own_init = "__init__" in cls.__dict__
    made = dataclasses.dataclass(slots=True, eq=False, init=not own_init)(cls)
    fields = dataclasses.fields(made)  # type: ignore[arg-type]  # mypy does not see the decorator
    moving = tuple(field.name for field in fields if not field.metadata)
    fixed = tuple(field.name for field in fields if field.metadata.get("static"))
    memos = {field.name: _beginning(field) for field in fields if field.metadata.get("memo")}
    held = tuple(field.name for field in fields if field.name not in memos)
    made.__record__ = {"held": held, "memo": memos}  # type: ignore[attr-defined]

    def flatten(item: Any) -> tuple[list[Any], Any]:
        # What is None is not there: vmap takes it for a leaf, and refuses it.
        there = [name for name in moving if getattr(item, name) is not None]
        context = [(name, getattr(item, name)) for name in fixed]
        return [getattr(item, name) for name in there], (there, context)

    def unflatten(children: Any, context: Any) -> Any:
        # Not through __init__: the fields are already what __init__ made of its arguments.
        item = object.__new__(made)
        there, constants = context
        for name, value in [*((name, None) for name in moving), *constants]:
            setattr(item, name, value)
        for name, make in memos.items():
            setattr(item, name, make())
        for name, value in zip(there, children, strict=True):
            setattr(item, name, value)
        return item

    _pytree.register_pytree_node(made, flatten, unflatten)
    return made


def _beginning(field: dataclasses.Field[Any]) -> Callable[[], Any]:
    """Makes what a memo begins with."""
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
    for name, make in type(item).__record__["memo"].items():  # type: ignore[attr-defined]
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
    """How often a tensor was changed in place; inference tensors do not count it."""
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
    return type(item).__record__["held"]  # type: ignore[attr-defined]
