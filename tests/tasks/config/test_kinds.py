"""Every kind: its short form, its defaults, and that it becomes a part of the library."""

import inspect

import pytest
import torch
from pydantic import BaseModel

from regard import scores, selection
from regard.tasks.config import load, setting
from regard.tasks.config.factories import (
    SCORES,
    SELECTIONS,
    build_attention,
    build_score,
    build_selection,
)
from regard.tasks.config.score import BilinearConfig, CoverageConfig, LocationAwareConfig
from regard.tasks.config.selection import SoftmaxConfig
from regard.tasks.config.translate import TranslateConfig
from tests.tasks.config.shapes import choices, every_choice, every_table, named, tables

CHOICES = pytest.mark.parametrize(
    ("path", "table", "around"),
    list(every_choice()),
)
TABLES = pytest.mark.parametrize("table", sorted(every_table(), key=str), ids=lambda t: t.__name__)

QUERY_SIZE, KEY_SIZE = 7, 7


def at(config: BaseModel, path: str) -> object:
    value: object = config
    for key in path.split("."):
        value = getattr(value, key)
    return value


def kinds(key: str) -> list[type[BaseModel]]:
    """The kinds of score or selection."""
    return tables(type(TranslateConfig().model).model_fields[key].annotation)


def test_every_choice_of_the_brief_is_there() -> None:
    found = {(path, named(table)) for path, table, _ in choices()}
    assert {kind for path, kind in found if path == "model"} == {
        "plain", "bahdanau", "luong", "transformer",
    }  # fmt: skip
    assert {kind for path, kind in found if path == "text"} == {"characters", "words", "bpe"}
    assert {kind for path, kind in found if path == "model.score"} == {*SCORES, "coverage"}
    assert {kind for path, kind in found if path == "model.score.inner"} == {*SCORES}
    assert {kind for path, kind in found if path == "model.selection"} == {*SELECTIONS}


@CHOICES
def test_a_name_is_short_for_a_table(
    path: str, table: type[BaseModel], around: dict[str, str]
) -> None:
    chosen = [setting(f"{outer}={kind}") for outer, kind in around.items()]
    short = load(TranslateConfig, overrides=[*chosen, setting(f"{path}={named(table)}")])
    long = load(
        TranslateConfig, overrides=[*chosen, setting(f'{path}={{kind = "{named(table)}"}}')]
    )
    assert short == long
    assert at(short, path) == table()


@TABLES
def test_every_key_is_explained(table: type[BaseModel]) -> None:
    silent = [key for key, field in table.model_fields.items() if not field.description]
    assert silent in ([], ["kind"])
    assert table.__doc__


@TABLES
def test_every_key_has_a_default_that_a_table_without_keys_has_too(
    table: type[BaseModel],
) -> None:
    for key, field in table.model_fields.items():
        assert not field.is_required(), key
        inside = tables(field.annotation)
        assert not inside or field.default == type(field.default)(), key


@TABLES
def test_none_is_the_default_or_not_to_be_had(table: type[BaseModel]) -> None:
    for key, field in table.model_fields.items():
        if type(None) in getattr(field.annotation, "__args__", ()):
            assert field.default is None, key


@TABLES
def test_tables_are_closed_and_frozen(table: type[BaseModel]) -> None:
    with pytest.raises(ValueError, match="Extra inputs"):
        table(no_such_key=1)
    for key in table.model_fields:
        with pytest.raises(ValueError, match="frozen"):
            setattr(table(), key, 1)


def taken(make: object) -> set[str]:
    """The options of a part of the library, sizes of its surroundings aside."""
    asked = inspect.signature(make).parameters.values()
    named = {
        each.name for each in asked if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    }
    return named - {"query_size", "key_size"}


@pytest.mark.parametrize("table", [*kinds("score"), *kinds("selection")], ids=named)
def test_keys_are_the_options_of_the_library(table: type[BaseModel]) -> None:
    makers = {**SCORES, **SELECTIONS, "coverage": scores.Coverage}
    assert set(table.model_fields) - {"kind"} == taken(makers[named(table)])


@pytest.mark.parametrize("score", kinds("score"), ids=named)
@pytest.mark.parametrize("select", kinds("selection"), ids=named)
def test_every_pair_builds_and_reads(score: type[BaseModel], select: type[BaseModel]) -> None:
    attention = build_attention(score(), select(), QUERY_SIZE, KEY_SIZE)
    queries, keys = torch.randn(2, 3, QUERY_SIZE), torch.randn(2, 5, KEY_SIZE)
    reading = attention(queries, keys, keys)
    assert reading.context.shape == (2, 3, KEY_SIZE)
    assert reading.context.isfinite().all()


def test_sizes_and_options_arrive() -> None:
    built = build_score(LocationAwareConfig(hidden_size=11, filters=3, kernel_size=5), 7, 13)
    assert isinstance(built, scores.LocationAware)
    assert built.query_weight.shape == (11, 7)
    assert built.key_weight.shape == (11, 13)
    assert built.filters.shape == (3, 5)
    covered = build_score(CoverageConfig(inner=BilinearConfig(), fertility=2.0, weight=-0.5), 7, 13)
    assert isinstance(covered, scores.Coverage)
    assert covered.fertility_weight is not None
    assert covered.fertility_weight.shape == (1, 13)
    assert covered.weight.item() == -0.5
    assert isinstance(covered.inner, scores.Bilinear)
    soft = build_selection(SoftmaxConfig(temperature=0.3, dropout=0.2), 7)
    assert isinstance(soft, selection.Softmax)
    assert (soft.temperature, soft.dropout) == (0.3, 0.2)
