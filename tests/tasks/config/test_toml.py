"""The TOML of `init`: it loads back equal, documents every key, and is only TOML."""

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from pydantic import BaseModel

from regard.tasks.config import as_toml, load, setting
from regard.tasks.config.translate import TranslateConfig
from tests.tasks.config.shapes import every_choice, named, written


def again(config: TranslateConfig) -> TranslateConfig:
    """Out to TOML and in again."""
    return load(TranslateConfig, defaults=tomllib.loads(as_toml(config)))


@pytest.mark.parametrize(
    ("path", "table", "around"),
    list(every_choice()),
)
def test_every_kind_comes_back(path: str, table: type[BaseModel], around: dict[str, str]) -> None:
    chosen = [setting(f"{outer}={kind}") for outer, kind in around.items()]
    config = load(TranslateConfig, overrides=[*chosen, setting(f"{path}={named(table)}")])
    assert again(config) == config


@given(written(TranslateConfig))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_configuration_comes_back(values: dict[str, Any]) -> None:
    config = load(TranslateConfig, defaults=values)
    assert again(config) == config
    # By the parser alone: every key is there, with its value, but for what is not set.
    assert tomllib.loads(as_toml(config)) == unset_aside(config.model_dump(mode="json"))


def unset_aside(values: dict[str, Any]) -> dict[str, Any]:
    tables = {key: unset_aside(value) if isinstance(value, dict) else value
              for key, value in values.items()}  # fmt: skip
    return {key: value for key, value in tables.items() if value is not None}


def test_every_key_and_every_table_is_explained() -> None:
    lines = as_toml(load(TranslateConfig, overrides=[setting("model=transformer")])).splitlines()
    keys = [number for number, line in enumerate(lines) if line and line[0] != "#"]
    assert len(keys) > 40
    assert [lines[number] for number in keys if not lines[number - 1].startswith("#")] == []
    assert max(map(len, lines)) <= 100


def test_kinds_are_listed_where_one_is_chosen() -> None:
    text = as_toml(TranslateConfig())
    assert "Kinds: plain, bahdanau, luong, transformer.\n[model]\n" in text
    assert '# e = vᵀ tanh(W_q q + W_k k).\nkind = "additive"\n' in text


def test_what_is_not_set_is_shown_as_a_comment() -> None:
    text = as_toml(load(TranslateConfig, overrides=[setting("model.score=scaled_dot")]))
    assert "\n# scale =\n" in text


def test_a_heading_stands_above(tmp_path: Path) -> None:
    text = as_toml(TranslateConfig(), "One.\nTwo.")
    assert text.startswith("# One.\n# Two.\n\n# The task.\ntask = ")
    (tmp_path / "run.toml").write_text(text, encoding="utf-8")
    assert load(TranslateConfig, path=tmp_path / "run.toml") == TranslateConfig()
