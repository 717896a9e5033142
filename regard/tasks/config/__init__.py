"""Configuration: closed tables, a `kind` for every choice, errors that name the nearest right key.

    from regard.tasks.config import load, setting
    from regard.tasks.config.translate import TranslateConfig

    config = load(TranslateConfig, path="run.toml", overrides=[setting("training.steps=300")])

What a kind becomes in the library is in `factories`, which imports torch; nothing else here does.
"""

from regard.tasks.config.config_diff import (
    check_resumable,
    difference,
    fingerprint,
    flatten,
    free_keys,
    may_change,
)
from regard.tasks.config.loading import load, parse_toml, read_toml, setting
from regard.tasks.config.merge import ConfigSource
from regard.tasks.config.options import Options
from regard.tasks.config.recipes import recipe_layer, recipes
from regard.tasks.config.task import TaskConfig
from regard.tasks.config.toml import as_toml

__all__ = [
    "ConfigSource",
    "Options",
    "TaskConfig",
    "as_toml",
    "check_resumable",
    "difference",
    "fingerprint",
    "flatten",
    "free_keys",
    "load",
    "may_change",
    "parse_toml",
    "read_toml",
    "recipe_layer",
    "recipes",
    "setting",
]
