"""`regard recipes` and `--recipe`: a layer between a task's defaults and what the user says."""

import re
import tomllib
from pathlib import Path

import pytest

from regard.cli.main import main
from regard.tasks.config import load, parse_toml, recipe_layer, recipes, setting
from regard.tasks.config.translate import TranslateConfig
from regard.tasks.registry import config_type

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", recipes())
def test_a_recipe_loads_names_no_files_and_says_what_it_is(name: str) -> None:
    recipe = recipes()[name]
    config = load(config_type(recipe.task), recipe=recipe_layer(name, recipe.task))
    assert config.task == recipe.task
    assert "data" not in tomllib.loads(recipe.text)
    assert re.match(r"# [^\n]+\.\n# data: [^\n]+\n# result: [^\n]+\n", recipe.text)
    assert f"| `{name}` |" in (ROOT / "docs" / "recipes.md").read_text()


def test_the_results_are_those_of_the_benchmarks() -> None:
    pages = ("recipes.md", "alignment.md")
    measured = "".join((ROOT / "docs" / "benchmarks" / page).read_text() for page in pages)
    for recipe in recipes().values():
        figures = re.findall(r"BLEU .*|\d\.\d+", recipe.result)
        assert figures
        assert all(figure in measured for figure in figures)


def test_the_list_has_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(recipes())
    assert all("Data: " in line and "Result: " in line for line in lines)


def test_what_is_printed_is_the_recipe(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["recipes", "multi30k-bahdanau"]) == 0
    printed = parse_toml("printed", capsys.readouterr().out.encode()).values
    assert printed == recipe_layer("multi30k-bahdanau", "translate").values


def test_a_file_and_a_setting_are_above_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.toml"
    file.write_text("[training]\nrate = 0.5\nsteps = 7\n")
    arguments = ["--recipe", "multi30k-bahdanau", "--config", str(file)]
    assert main(["init", "translate", *arguments, "--set", "training.steps=11"]) == 0
    written = tomllib.loads(capsys.readouterr().out)
    recipe = tomllib.loads(recipes()["multi30k-bahdanau"].text)
    assert written["training"]["rate"] == 0.5
    assert written["training"]["steps"] == 11
    assert written["training"]["warmup"] == recipe["training"]["warmup"]
    assert written["model"]["state_size"] == recipe["model"]["state_size"]


def test_another_kind_leaves_the_rest_of_the_recipe() -> None:
    layer = recipe_layer("multi30k-transformer", "translate")
    config = load(TranslateConfig, recipe=layer, overrides=[setting("model=luong")])
    assert config.model.kind == "luong"
    assert config.training.steps == layer.values["training"]["steps"]


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["recipes", "multi30k-bahdanu"], ["Did you mean multi30k-bahdanau?", "regard recipes"]),
        (["init", "translate", "--recipe", "x"], ["x is not a recipe", *recipes()]),
        (["train", "align", "--recipe", "multi30k-bahdanau", "--out", "r"],
         ["of the task translate", "regard train translate --recipe multi30k-bahdanau"]),
        (["check", "translate", "--recipe", "multi30k-bahdanau", "--set", "model.layers=2"],
         ["--set model.layers=2"]),
    ],
)  # fmt: skip
def test_a_refusal_is_one_line_with_its_cure(
    arguments: list[str], parts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert all(part in line for part in parts), line
