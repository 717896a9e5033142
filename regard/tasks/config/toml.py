"""Writes a configuration as commented TOML."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from regard.tasks.config.options import Options
from regard.tasks.config.schema import Path, kind_of, members

WIDTH = 98


def as_toml(config: Options, heading: str = "") -> str:
    """Every key with its value and documentation; loading it gives the same configuration."""
    above = [*(f"# {line}".rstrip() for line in heading.splitlines()), ""] if heading else []
    return "\n".join([*above, *_table(config, ())]).strip("\n") + "\n"


def as_value(value: object) -> str:
    """One value as TOML writes it.

    >>> as_value({"kind": "top_k", "k": 3, "names": ["a", "b"]})
    '{kind = "top_k", k = 3, names = ["a", "b"]}'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {as_value(part)}" for key, part in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(as_value(part) for part in value) + "]"
    return str(value)


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    controls = {code: f"\\u{code:04X}" for code in (*range(0x20), 0x7F)}
    return f'"{escaped.translate(controls)}"'


def _table(table: Options, path: Path) -> Iterator[str]:
    """Its own keys, then the tables in it, as TOML needs it; a kind comes first."""
    named = {key: getattr(table, key) for key in type(table).model_fields}
    for key in sorted(named, key=lambda key: key != "kind"):
        if not isinstance(named[key], Options):
            yield from _line(table, key, named[key])
    for key, inner in named.items():
        if isinstance(inner, Options):
            yield ""
            yield from _comment(_about(table, key))
            yield f"[{'.'.join((*path, key))}]"
            yield from _table(inner, (*path, key))


def _line(table: Options, key: str, value: object) -> Iterator[str]:
    if key == "kind":
        yield from _comment((type(table).__doc__ or "").splitlines()[0])
    else:
        yield from _comment(_about(table, key))
    yield f"# {key} =" if value is None else f"{key} = {as_value(value)}"


def _about(table: Options, key: str) -> str:
    """What a key means, and which kinds there are to choose from."""
    kinds = [kind for kind in map(kind_of, members(type(table), key)) if kind]
    description = type(table).model_fields[key].description or ""
    return f"{description} Kinds: {', '.join(kinds)}." if kinds else description


def _comment(text: str) -> Iterator[str]:
    for line in textwrap.wrap(" ".join(text.split()), WIDTH):
        yield f"# {line}"
