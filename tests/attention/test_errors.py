"""Every error is of the library's own tree, and a ValueError too."""

import ast
import inspect
from pathlib import Path

import numpy as np
import pytest
import torch

import regard.attention
from regard import masks, scores
from regard.attention.core import errors

CLASSES = dict(inspect.getmembers(errors, inspect.isclass))
SOURCES = sorted(Path(regard.attention.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("name", CLASSES)
def test_every_error_is_a_value_error_of_the_library(name: str) -> None:
    assert issubclass(CLASSES[name], errors.RegardError)
    assert issubclass(CLASSES[name], ValueError)


def test_the_tree_is_drawn_whole() -> None:
    branches = [line.split()[1] for line in errors.__doc__.splitlines() if "── " in line]
    assert sorted([*branches, "RegardError"]) == sorted(CLASSES)


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_nothing_else_is_raised(source: Path) -> None:
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Raise) and node.exc is not None:
            raised = ast.unparse(node.exc)
            assert raised.partition("(")[0] in CLASSES, f"line {node.lineno}: raise {raised}"
            assert isinstance(node.exc, ast.Call), f"line {node.lineno}: it says nothing"


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_an_error_is_raised_again_only_where_it_was_caught(source: Path) -> None:
    tree = ast.parse(source.read_text())
    handled = {
        id(inner)
        for handler in ast.walk(tree)
        if isinstance(handler, ast.ExceptHandler)
        for inner in ast.walk(handler)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is None:
            assert id(node) in handled, f"line {node.lineno}"


SAID = {
    "the class Causal": masks.Causal,
    "the function softmax": torch.softmax,
    "a Tensor of shape (2, 3)": torch.ones(2, 3),
    "a ndarray of shape (5,)": np.ones(5),
    "tensor(7.)": torch.tensor(7.0),
    "Dot()": scores.Dot(),
    "'dot'": "dot",
    "None": None,
    "[0, 1, 2, 3, 4, 5, ...]": list(range(1000)),
}


@pytest.mark.parametrize("said", SAID)
def test_what_was_given_is_said_in_a_few_words(said: str) -> None:
    assert errors.shown(SAID[said]) == said


def test_a_module_is_shown_on_one_line() -> None:
    said = errors.shown(scores.Coverage(scores.Additive(5, 7, 11)))
    assert said.startswith("Coverage(")
    assert "\n" not in said
    assert len(said) < 50
