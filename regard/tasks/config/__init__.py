"""Configuration: closed tables, a `kind` for every choice, errors that name the nearest right key.

    from regard.tasks.config import Translate, load, setting

    config = load(Translate, path="run.toml", said=[setting("training.steps=300")])

What a kind becomes in the library is in `building`, which imports torch; nothing else here does.
"""

from collections.abc import Mapping

from regard.tasks.config.align import Align
from regard.tasks.config.canonical import (
    MAY_CHANGE,
    canonical,
    check_resumable,
    difference,
    fingerprint,
    may_change,
)
from regard.tasks.config.layers import Layer
from regard.tasks.config.loading import load, read_toml, setting
from regard.tasks.config.options import Options
from regard.tasks.config.toml import as_toml
from regard.tasks.config.translate import Translate

TASKS: Mapping[str, type[Options]] = {"translate": Translate, "align": Align}
"""The configuration of each task."""

__all__ = [
    "MAY_CHANGE",
    "TASKS",
    "Align",
    "Layer",
    "Options",
    "Translate",
    "as_toml",
    "canonical",
    "check_resumable",
    "difference",
    "fingerprint",
    "load",
    "may_change",
    "read_toml",
    "setting",
]
