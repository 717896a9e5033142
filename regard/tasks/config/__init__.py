"""Configuration: closed tables, a `kind` for every choice, errors that name the nearest right key.

    from regard.tasks.config import Translate, load, setting

    config = load(Translate, path="run.toml", said=[setting("training.steps=300")])

What a kind becomes in the library is in `building`, which imports torch; nothing else here does.
"""

from collections.abc import Mapping

from regard.tasks.config.align import AlignConfig
from regard.tasks.config.config_diff import (
    MAY_CHANGE,
    check_resumable,
    difference,
    fingerprint,
    flatten,
    may_change,
)
from regard.tasks.config.loading import load, parse_toml, read_toml, setting
from regard.tasks.config.merge import ConfigSource
from regard.tasks.config.options import Options
from regard.tasks.config.toml import as_toml
from regard.tasks.config.translate import TranslateConfig

TASKS: Mapping[str, type[Options]] = {"translate": TranslateConfig, "align": AlignConfig}
"""The configuration of each task."""

__all__ = [
    "MAY_CHANGE",
    "TASKS",
    "AlignConfig",
    "ConfigSource",
    "Options",
    "TranslateConfig",
    "as_toml",
    "check_resumable",
    "difference",
    "fingerprint",
    "flatten",
    "load",
    "may_change",
    "parse_toml",
    "read_toml",
    "setting",
]
