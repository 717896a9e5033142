"""The base class of every table of a configuration: closed, frozen, each key documented."""

from abc import ABC
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field


class Options(BaseModel, ABC):
    """One table. An unknown key is an error; a docstring after a key documents it.

    Every key has a default, so that `score = "additive"` is enough; None, which TOML lacks, is only
    ever a default.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,  # "300" is not 300, and true is not 1
        allow_inf_nan=False,
        use_attribute_docstrings=True,
    )


def _listed(given: object) -> object:
    """One text is short for a list of one."""
    if isinstance(given, str):
        return (given,)
    return tuple(given) if isinstance(given, list) else given


def _encodable(text: str) -> str:
    """A file's name may be any bytes, but TOML and JSON hold Unicode only."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("This is not valid Unicode. Rename the file.") from None
    return text


def at_most(most: int) -> AfterValidator:
    """An upper bound beyond which memory or time would never suffice."""

    def checked(number: int) -> int:
        if number > most:
            raise ValueError(f"Give at most {most:,}.")
        return number

    return AfterValidator(checked)


@dataclass(frozen=True)
class PathKey:
    """Marks a key that names files: these must exist, and may move before a resume."""

    folders: bool = False
    """May it name folders, too?"""


Texts = Annotated[tuple[Annotated[str, AfterValidator(_encodable)], ...], BeforeValidator(_listed)]
Paths = Annotated[Texts, PathKey()]
Count = Annotated[int, Field(ge=0), at_most(2**31 - 1)]
Size = Annotated[int, Field(ge=1), at_most(2**31 - 1)]
Width = Annotated[int, Field(ge=1), at_most(2**16)]
"""Of vectors and windows."""

Layers = Annotated[int, Field(ge=1), at_most(1000)]
Positive = Annotated[float, Field(gt=0)]
AtLeastZero = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, lt=1)]
