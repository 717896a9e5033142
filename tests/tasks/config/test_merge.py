"""Defaults, a file, the command line: which overrides which, and what is dropped."""

from pathlib import Path

import pytest

from regard.seq2seq.errors import ConfigError
from regard.tasks.config import load, setting
from regard.tasks.config.model import BahdanauConfig, LuongConfig, NoAttentionConfig
from regard.tasks.config.score import AdditiveConfig, DotConfig, GaussianConfig
from regard.tasks.config.selection import TopKConfig
from regard.tasks.config.translate import TranslateConfig


def loaded(
    *said: str, file: str | None = None, defaults: dict | None = None, folder: Path | None = None
) -> TranslateConfig:
    path = None
    if file is not None:
        assert folder is not None
        path = folder / "run.toml"
        path.write_text(file, encoding="utf-8")
    return load(
        TranslateConfig, defaults=defaults, path=path, overrides=[setting(text) for text in said]
    )


def test_later_layers_win(tmp_path: Path) -> None:
    config = loaded(
        "training.steps=3",
        file="[training]\nsteps = 2\nseed = 2\n",
        defaults={"training": {"steps": 1, "seed": 1, "keep": 9}},
        folder=tmp_path,
    )
    assert (config.training.steps, config.training.seed, config.training.keep) == (3, 2, 9)
    assert loaded("training.seed=4", "training.seed=5").training.seed == 5


def test_the_same_kind_keeps_its_options(tmp_path: Path) -> None:
    file = '[model.score]\nkind = "additive"\nhidden_size = 7\n'
    config = loaded("model.score=additive", file=file, folder=tmp_path)
    assert config.model.score == AdditiveConfig(hidden_size=7)


def test_another_kind_drops_the_old_ones_options(tmp_path: Path) -> None:
    file = '[model]\nkind = "bahdanau"\nencoder_size = 7\n[model.score]\nkind = "cosine"\n'
    assert loaded("model.kind=plain", file=file, folder=tmp_path).model == NoAttentionConfig()
    defaults = {"model": {"kind": "bahdanau", "score": {"kind": "additive", "hidden_size": 5}}}
    assert loaded("model.score=gaussian", defaults=defaults).model.score == GaussianConfig(
        sigma=1.0
    )


def test_a_missing_kind_is_filled_in_last(tmp_path: Path) -> None:
    # Were it filled in layer by layer, the file's option would go with the wrong kind.
    file = "[model]\nlayers = 3\n"
    assert loaded("model.kind=luong", file=file, folder=tmp_path).model == LuongConfig(layers=3)
    assert loaded(file="[model]\nembedding = 3\n", folder=tmp_path).model == BahdanauConfig(
        embedding=3
    )


def test_a_missing_kind_is_that_of_the_chosen_model() -> None:
    assert loaded("model.kind=luong").model.score.kind == "bilinear"
    assert loaded("model.score.hidden_size=5").model.score == AdditiveConfig(hidden_size=5)
    with pytest.raises(ConfigError, match="bilinear has no hidden_size; additive"):
        loaded("model.kind=luong", "model.score.hidden_size=5")


def test_an_option_given_without_a_kind_is_not_lost_with_a_kind_below(tmp_path: Path) -> None:
    defaults = {"model": {"kind": "bahdanau", "embedding": 64, "encoder_size": 9}}
    file = "[model]\nstate_size = 300\n"
    config = loaded("model.kind=luong", file=file, defaults=defaults, folder=tmp_path)
    assert config.model == LuongConfig(state_size=300)


def test_settings_may_come_in_any_order(tmp_path: Path) -> None:
    file = '[model]\nkind = "bahdanau"\ndropout = 0.5\n'
    for said in (["model.kind=luong", "model.layers=2"], ["model.layers=2", "model.kind=luong"]):
        assert loaded(*said, file=file, folder=tmp_path).model == LuongConfig(layers=2)


def test_short_and_long_forms_lie_over_each_other(tmp_path: Path) -> None:
    file = '[model]\nscore = "additive"\nselection = {kind = "top_k", k = 3}\n'
    config = loaded("model.score.hidden_size=5", file=file, folder=tmp_path)
    assert config.model.score == AdditiveConfig(hidden_size=5)
    assert config.model.selection == TopKConfig(k=3)
    assert loaded("model.score=dot", file=file, folder=tmp_path).model.score == DotConfig()


def test_a_choice_inside_a_choice() -> None:
    config = loaded(
        "model.score=coverage", "model.score.inner=gaussian", "model.score.inner.sigma=2"
    )
    assert config.model.score.inner == GaussianConfig(sigma=2.0)


def test_values_are_toml_and_bare_words_are_texts() -> None:
    config = loaded(
        "data.train=my pairs/a.tsv",
        "data.valid=['a', \"b\"]",
        "text={kind = 'bpe', joint = false}",
        "training.rate=3e-4",
        "training.steps = 1_000",
        "training.device='cuda:1'",
    )
    assert config.data.train == ("my pairs/a.tsv",)
    assert config.data.valid == ("a", "b")
    assert config.text.joint is False
    assert (config.training.rate, config.training.steps) == (3e-4, 1000)
    assert config.training.device == "cuda:1"
    assert loaded("data.train=2024-05-03").data.train == ("2024-05-03",)
    assert loaded(r"data.train=C:\pairs.tsv").data.train == (r"C:\pairs.tsv",)


def test_a_file_may_have_a_mark_and_carriage_returns(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_bytes(b"\xef\xbb\xbf[training]\r\nsteps = 3\r\n")
    assert load(TranslateConfig, path=path).training.steps == 3


def test_defaults_are_not_changed() -> None:
    defaults = {"model": {"kind": "luong", "score": "dot"}}
    loaded("model.score.kind=gaussian", "model.layers=2", defaults=defaults)
    assert defaults == {"model": {"kind": "luong", "score": "dot"}}
