"""From files and command lines to a configuration."""

import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time
from typing import Any, TypeVar

from pydantic import ValidationError

from regard.seq2seq.errors import ConfigError
from regard.tasks.config.error_messages import error_message
from regard.tasks.config.merge import ConfigSource, merge, origin, with_kinds
from regard.tasks.config.options import Options
from regard.tasks.config.wording import one_line

Loaded = TypeVar("Loaded", bound=Options)

LARGEST = 1 << 15
"""So many bytes a file has at most; to parse a long dotted key takes the square of its length."""

DEEPEST = 16
"""Tables in tables; a configuration has a handful."""

BITS = 64
"""Of a whole number; Python would not even write down one of thousands."""

WORD = re.compile(r"[^\s\"'\[{][^\n]*")
"""What is a text though it has no quotes: anything that does not begin as TOML's others do."""


def load(
    shape: type[Loaded],
    *,
    defaults: Mapping[str, Any] | None = None,
    recipe: ConfigSource | None = None,
    path: str | os.PathLike[str] | None = None,
    overrides: Sequence[ConfigSource] = (),
) -> Loaded:
    """A configuration: its defaults, over them a recipe, a file, and the command line.

    The defaults are a layer like the others: setting one key of a table leaves the rest as they are
    in this task, which need not be as the table has them elsewhere.

    >>> from regard.tasks.config.translate import TranslateConfig
    >>> load(TranslateConfig, overrides=[setting("model.score=dot")]).model.score
    DotConfig(kind='dot')

    Args:
        shape: The class of the task's configuration.
        defaults: What is otherwise than in the class.
        recipe: A recipe; see `recipe_layer`.
        path: A TOML file.
        overrides: What the command line says; see `setting`.
    """
    written = [] if recipe is None else [recipe]
    written += [] if path is None else [read_toml(path)]
    layers = [ConfigSource("the defaults", defaults or {}), *written, *overrides]
    lowest = shape().model_dump(exclude_none=True)
    values = merge([lowest, *(layer.values for layer in layers)], shape)
    try:
        return shape.model_validate(with_kinds(values, shape))
    except ValidationError as error:
        raise ConfigError(_error_line(shape, error, layers)) from None


def _error_line(
    shape: type[Options], error: ValidationError, layers: Iterable[ConfigSource]
) -> str:
    path, sentence = error_message(shape, error)
    source = origin(layers, path)
    return one_line(f"{source}: {sentence}" if source else sentence)


def read_toml(path: str | os.PathLike[str]) -> ConfigSource:
    """Read a TOML file."""
    name = os.fspath(path)
    try:
        with open(path, "rb") as file:
            content = file.read(LARGEST + 1)
    except FileNotFoundError:
        raise ConfigError(
            f"{name}: no such file. Write one with: regard init translate > {name}"
        ) from None
    except OSError as error:
        raise ConfigError(f"{name}: {error.strerror}. Give a TOML file.") from None
    if len(content) > LARGEST:
        raise ConfigError(f"{name}: it has more than {LARGEST:,} bytes. Give a TOML file.")
    return parse_toml(name, content)


def parse_toml(name: str, content: bytes) -> ConfigSource:
    """Parse the content of a TOML file of this name."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name}: byte {error.start} is not UTF-8. Give a TOML file.") from None
    try:
        found = _loads(text.replace("\r\n", "\n"))
    except ValueError as error:
        raise ConfigError(f"{name}: not TOML: {_with_line(str(error), text)}") from None
    return ConfigSource(name, _bounded(found, name))


def _loads(text: str) -> dict[str, Any]:
    """TOML; a `ValueError` for whatever is wrong with it."""
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _bounded(values: dict[str, Any], who: str) -> dict[str, Any]:
    """The same; raises if tables are nested too deeply or an integer has too many bits."""
    level: list[object] = [values]
    for _ in range(DEEPEST):
        level = [inner for outer in level for inner in _inside(outer)]
        if any(isinstance(value, int) and value.bit_length() > BITS for value in level):
            raise ConfigError(
                one_line(f"{who:.200}: it holds a whole number of more than {BITS} bits.")
            )
    if level:
        raise ConfigError(one_line(f"{who:.200}: it is nested more than {DEEPEST} levels deep."))
    return values


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, Mapping):
        return value.values()
    return value if isinstance(value, list) else ()


def _with_line(message: str, text: str) -> str:
    """The parser's message, and the line that it is about."""
    found = re.search(r"at line (\d+)", message)
    lines = text.split("\n")
    line = lines[int(found[1]) - 1].strip() if found and int(found[1]) <= len(lines) else ""
    return f"{message}: {line[:60]}" if line else f"{message}."


def setting(text: str) -> ConfigSource:
    """Parse `--set a.b=value`; the value is TOML, or a bare word.

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
    for part in reversed(path[:DEEPEST]):
        values = {part: values}
    return ConfigSource(f"--set {text}", _bounded(values, f"--set {text}"))


def _parsed(text: str, value: str) -> object:
    try:
        found = _loads(f"value = {value}")
        if list(found) != ["value"]:  # more lines, which would set something else
            raise ValueError("more than one value")
    except ValueError as error:
        if WORD.fullmatch(value):
            return value
        why = str(error).split(" (at ")[0]
        message = f"--set {text:.200}: {value:.200} is not a TOML value: {why}."
        raise ConfigError(one_line(message)) from None
    # A bare date is a file's name rather than a date: no key holds dates.
    return value if isinstance(found["value"], date | datetime | time) else found["value"]
