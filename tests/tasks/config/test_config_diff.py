"""Hashes, differences, and what may change when a run is resumed."""

import hashlib
import json

import pytest

from regard.seq2seq.errors import ConfigError
from regard.tasks.config import (
    as_toml,
    check_resumable,
    difference,
    fingerprint,
    flatten,
    load,
    may_change,
    setting,
)
from regard.tasks.config.schema import every_path
from regard.tasks.config.translate import TranslateConfig

FREE = {
    "training.steps", "training.save_every", "training.validate_every", "training.patience",
    "training.keep", "training.threads", "training.device", "decoding", "decoding.beam",
    "decoding.penalty", "decoding.patience", "decoding.longest_factor", "decoding.longest_extra",
    "decoding.max_length", "decoding.max_source_length", "decoding.too_long",
    "data.train", "data.valid", "data.links",
}  # fmt: skip


def config(*said: str) -> TranslateConfig:
    return load(TranslateConfig, overrides=[setting(text) for text in said])


def test_its_json_is_one_line_of_sorted_keys_and_holds_everything() -> None:
    one = config("data.train=Straße.tsv")
    plain = json.loads(flatten(one))
    assert list(plain) == sorted(plain)
    assert "\n" not in flatten(one)
    assert "Straße" in flatten(one)
    assert load(TranslateConfig, defaults={k: v for k, v in plain.items() if v is not None}) == one
    assert fingerprint(one) == hashlib.sha256(flatten(one).encode()).hexdigest()


def test_how_it_was_written_does_not_matter() -> None:
    assert fingerprint(config("training.rate=1")) == fingerprint(config("training.rate=1.0"))
    assert fingerprint(config("model.score=dot")) == fingerprint(config("model.score.kind=dot"))
    assert fingerprint(config("training.seed=2")) != fingerprint(config())
    assert "training.seed" not in as_toml(config())


def test_differences_are_named_in_order() -> None:
    assert difference(config(), config()) == []
    other = config(
        "decoding.beam=1", "training.seed=2", "data.train=a", "model.score.hidden_size=3"
    )
    assert difference(config(), other) == [
        "data.train", "model.score.hidden_size", "training.seed", "decoding.beam",
    ]  # fmt: skip


def test_another_kind_is_one_difference() -> None:
    assert difference(config("model=plain"), config("model=transformer")) == ["model.kind"]
    assert difference(config("model.score=dot"), config("model.score=cosine")) == [
        "model.score.kind"
    ]


def test_what_may_change_is_what_the_table_says() -> None:
    every = {".".join(path) for path in every_path(TranslateConfig)}
    assert {path for path in every if may_change(TranslateConfig, path)} == FREE


def test_a_run_resumes_with_more_steps_and_on_another_device() -> None:
    check_resumable(config(), config())
    check_resumable(config(), config("training.steps=3", "training.device=cpu", "decoding.beam=1"))


def test_a_run_is_not_resumed_with_another_seed() -> None:
    with pytest.raises(ConfigError) as caught:
        check_resumable(config("training.seed=1"), config("training.seed=3", "decoding.beam=1"))
    assert str(caught.value).startswith(
        "training.seed is 3, but this run started with 1. Resume with the old value or take "
        "another folder; only training.steps, "
    )


def test_all_that_changed_is_noted() -> None:
    other = config("model=luong", "data.on_bad_input=skip", "text=words")
    with pytest.raises(ConfigError) as caught:
        check_resumable(config(), other)
    assert str(caught.value).startswith(
        'data.on_bad_input is "skip", but this run started with "error" '
        "(and text.kind, model.kind changed too)."
    )
