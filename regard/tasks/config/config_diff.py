"""A configuration as plain data: to hash it, to compare two, and to say what may change."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from regard.seq2seq.errors import ConfigError
from regard.tasks.config.options import Options
from regard.tasks.config.schema import path_keys
from regard.tasks.config.toml import as_value

FREE = (
    "training.steps",
    "training.patience",
    "training.save_every",
    "training.validate_every",
    "training.keep",
    "training.threads",
    "training.device",
    "decoding",
)
"""Keys and a table that do not affect the updates made so far, so they may change on resume."""


def flatten(config: Options) -> str:
    """Canonical JSON: keys sorted, no spaces."""
    plain = config.model_dump(mode="json")
    return json.dumps(
        plain, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
    )


def fingerprint(config: Options) -> str:
    """SHA-256 of its JSON, in hexadecimal digits."""
    return hashlib.sha256(flatten(config).encode()).hexdigest()


def difference(old: Options, new: Options) -> list[str]:
    """Which keys differ, in the order of the configuration.

    Where the kind differs, only that is listed: two kinds have different options.
    """
    return list(_differing(old.model_dump(), new.model_dump(), ""))


def _differing(old: Mapping[str, Any], new: Mapping[str, Any], before: str) -> Iterator[str]:
    if old.get("kind") != new.get("kind"):
        yield f"{before}kind"
        return
    for key in old:
        if isinstance(old[key], Mapping):
            yield from _differing(old[key], new[key], f"{before}{key}.")
        elif old[key] != new[key]:
            yield f"{before}{key}"


def may_change(shape: type[Options], path: str) -> bool:
    """May a resumed run have another value here?"""
    return any(path == free or path.startswith(f"{free}.") for free in free_keys(shape))


def free_keys(shape: type[Options]) -> list[str]:
    """Keys and tables that may change on resume.

    Files may lie elsewhere: their content is compared by its hash.
    """
    paths = (".".join(path) for path in path_keys(shape))
    return [*FREE, *paths]


def check_resumable(old: Options, new: Options) -> None:
    """Raise if a run of the old configuration cannot be resumed with the new one."""
    fixed = [path for path in difference(old, new) if not may_change(type(new), path)]
    if not fixed:
        return
    was, now = (as_value(_at(config, fixed[0].split("."))) for config in (old, new))
    also = f" (and {', '.join(fixed[1:])} changed too)" if fixed[1:] else ""
    raise ConfigError(
        f"{fixed[0]} is {now}, but this run started with {was}{also}. Resume with the old value or "
        f"take another folder; only {', '.join(free_keys(type(new)))} may change."
    )


def _at(config: Options, path: Sequence[str]) -> object:
    value: object = config
    for key in path:
        value = getattr(value, key)
    return value
