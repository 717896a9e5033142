"""The allowed values of a key, in words."""

from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen
from pydantic.fields import FieldInfo

from regard.tasks.config.toml import as_value
from regard.tasks.config.wording import listed

NAMES = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}


def needed(field: FieldInfo) -> str:
    """What to give, for a key that holds a value.

    >>> from regard.tasks.config.training import TrainingConfig
    >>> needed(TrainingConfig.model_fields["steps"])
    'a whole number of 1 or more'
    >>> needed(TrainingConfig.model_fields["smoothing"])
    'a number of at least 0 and below 1'
    >>> from regard.tasks.config.decoding import DecodingConfig
    >>> needed(DecodingConfig.model_fields["beam"])
    'a whole number from 1 to 1000'
    >>> needed(DecodingConfig.model_fields["max_length"])
    'a whole number from 1 to 1000000'
    """
    kind, limits = _unwrapped(field.annotation, list(field.metadata))
    if get_origin(kind) is Literal:
        return listed([as_value(value) for value in get_args(kind)], "or")
    if get_origin(kind) is tuple:
        return _texts(limits)
    return f"{NAMES[kind]}{_range(limits)}"


def allowed_texts(field: FieldInfo) -> list[str]:
    """The texts it may be, if these are given one by one."""
    return list(get_args(field.annotation)) if get_origin(field.annotation) is Literal else []


def _unwrapped(annotation: Any, limits: list[Any]) -> tuple[Any, list[Any]]:
    """The type itself, and everything that narrows it."""
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        return _unwrapped(inner, [*limits, *more])
    for part in limits[:]:
        limits += getattr(part, "metadata", [])  # Field(…) that stands inside a union
    if NoneType in get_args(annotation):
        rest = [part for part in get_args(annotation) if part is not NoneType]
        return _unwrapped(rest[0], limits)
    return annotation, limits


def _limit(limits: list[Any], kind: type, name: str) -> Any:
    return next((getattr(part, name) for part in limits if isinstance(part, kind)), None)


def _range(limits: list[Any]) -> str:
    least, above = _limit(limits, Ge, "ge"), _limit(limits, Gt, "gt")
    below, most = _limit(limits, Lt, "lt"), _limit(limits, Le, "le")
    if least is not None and most is not None:
        return f" from {least} to {most}"
    upper = "" if below is None else f" and below {below}"
    if above is not None:
        return f" greater than {above}{upper}"
    if least is None:
        return ""
    return f" of at least {least}{upper}" if upper else f" of {least} or more"


def _texts(limits: list[Any]) -> str:
    least, most = _limit(limits, MinLen, "min_length"), _limit(limits, MaxLen, "max_length")
    return f"a list of {'' if least == most else 'at most '}{most} texts"
