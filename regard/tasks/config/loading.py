"""From files and command lines to a configuration."""

import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from regard.seq2seq.errors import ConfigError
from regard.tasks.config.complaints import complaint
from regard.tasks.config.layers import Layer, origin, stacked, with_kinds
from regard.tasks.config.options import Options
from regard.tasks.config.words import one_line

Loaded = TypeVar("Loaded", bound=Options)

WORD = re.compile(r"[^\s\"'\[{][^\n]*")
"""What is a text though it has no quotes: anything that does not begin as TOML's others do."""


def load(
    shape: type[Loaded],
    *,
    defaults: Mapping[str, Any] | None = None,
    path: str | os.PathLike[str] | None = None,
    said: Sequence[Layer] = (),
) -> Loaded:
    """A configuration: the task's defaults, over them a file, over that the command line.

    >>> from regard.tasks.config.translate import Translate
    >>> load(Translate, said=[setting("model.score=dot")]).model.score
    Dot(kind='dot')

    Args:
        shape: The class of the task's configuration.
        defaults: What the task has otherwise than the class.
        path: A TOML file.
        said: What the command line says; see `setting`.
    """
    written = [] if path is None else [read_toml(path)]
    layers = [Layer("the defaults", defaults or {}), *written, *said]
    values = stacked([layer.values for layer in layers], shape)
    try:
        return shape.model_validate(with_kinds(values, shape))
    except ValidationError as error:
        raise ConfigError(_told(shape, error, layers)) from None


def _told(shape: type[Options], error: ValidationError, layers: Iterable[Layer]) -> str:
    path, sentence = complaint(shape, error)
    who = origin(layers, path)
    return one_line(f"{who}: {sentence}" if who else sentence)


def read_toml(path: str | os.PathLike[str]) -> Layer:
    """What a file says."""
    name = os.fspath(path)
    try:
        text = Path(path).read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(
            f"{name}: no such file. Write one with: regard init translate > {name}"
        ) from None
    except OSError as error:
        raise ConfigError(f"{name}: {error.strerror}. Give a TOML file.") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name}: byte {error.start} is not UTF-8. Give a TOML file.") from None
    try:
        return Layer(name, tomllib.loads(text.replace("\r\n", "\n")))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{name}: not TOML: {_with_line(str(error), text)}") from None


def _with_line(message: str, text: str) -> str:
    """The parser's message, and the line that it is about."""
    found = re.search(r"at line (\d+)", message)
    lines = text.split("\n")
    line = lines[int(found[1]) - 1].strip() if found and int(found[1]) <= len(lines) else ""
    return f"{message}: {line[:60]}" if line else f"{message}."


def setting(text: str) -> Layer:
    """What `--set a.b=value` says; the value is TOML, or a bare word.

    >>> setting("model.score=additive").values, setting("training.rate=3e-4").values
    ({'model': {'score': 'additive'}}, {'training': {'rate': 0.0003}})
    """
    key, equals, value = text.partition("=")
    path = [part.strip() for part in key.split(".")]
    if not equals or not all(path) or not value.strip():
        raise ConfigError(
            f"--set {one_line(text)}: this sets nothing. Write --set key=value, "
            "as in --set training.steps=300."
        )
    values: Any = _parsed(text, value.strip())
    for part in reversed(path):
        values = {part: values}
    return Layer(f"--set {text}", values)


def _parsed(text: str, value: str) -> object:
    try:
        found = tomllib.loads(f"value = {value}")
        if list(found) != ["value"]:  # more lines, which would set something else
            raise tomllib.TOMLDecodeError("more than one value")
    except tomllib.TOMLDecodeError as error:
        if WORD.fullmatch(value):
            return value
        why = str(error).split(" (at ")[0]
        raise ConfigError(one_line(f"--set {text}: {value} is not a TOML value: {why}.")) from None
    # A bare date is a file's name rather than a date: no key holds dates.
    return value if isinstance(found["value"], date | datetime | time) else found["value"]
