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


def memo(*, default_factory: Callable[[], Any] = dict, init: bool = False) -> Any:
    """A field for what was found out about the others: each copy begins with nothing in it."""
    return dataclasses.field(default_factory=default_factory, init=init, metadata={"memo": True})


@dataclass_transform(field_specifiers=(static, memo, dataclasses.field))
def record(cls: type[R]) -> type[R]:
    """Make `cls` a slotted dataclass and a pytree; an `__init__` of its own is kept."""
    own_init = "__init__" in cls.__dict__
    made = dataclasses.dataclass(slots=True, eq=False, init=not own_init)(cls)
    fields = dataclasses.fields(made)  # type: ignore[arg-type]  # mypy does not see the decorator
    moving = tuple(field.name for field in fields if not field.metadata)
    fixed = tuple(field.name for field in fields if field.metadata.get("static"))
    memos = tuple(field.name for field in fields if field.metadata.get("memo"))
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
        for name in memos:
            setattr(item, name, {})
        for name, value in zip(there, children, strict=True):
            setattr(item, name, value)
        return item

    _pytree.register_pytree_node(made, flatten, unflatten)
    return made


def changed(item: R, **fields: Any) -> R:
    """A copy of a record with some fields replaced."""
    copy = object.__new__(type(item))
    for name in _names(item):
        setattr(copy, name, fields[name] if name in fields else getattr(item, name))
    for name in _names(item, "memo"):
        setattr(copy, name, {})
    return copy


def mapped(item: R, change: Callable[[Tensor], Tensor]) -> R:
    """A copy of a record with `change` applied to each tensor in it, however deep."""
    fields = {name: _mapped(getattr(item, name), change) for name in _names(item)}
    return changed(item, **fields)


def tensors(item: object) -> list[Tensor]:
    """The tensors that a record holds itself."""
    names = _names(item)
    return [value for name in names if isinstance(value := getattr(item, name), Tensor)]


def _mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, dict):
        return {name: _mapped(part, change) for name, part in value.items()}
    return mapped(value, change) if dataclasses.is_dataclass(value) else value


def _names(item: object, kind: str = "held") -> tuple[str, ...]:
    return type(item).__record__[kind]  # type: ignore[attr-defined]
