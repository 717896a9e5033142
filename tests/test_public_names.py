"""The public names are the ones that were promised, sorted, and all there."""

import importlib
from types import ModuleType

import pytest

import regard
from regard import kernels, masks, scores, selection

PROMISED = {
    regard: "Attention Memory MultiHead attend load masks scores selection",
    scores: "Additive Bilinear Cosine Coverage Dot Gaussian InverseDistance Location LocationAware "
    "ScaledDot",
    selection: "Entmax Hard LocalMonotonic LocalPredictive Monotonic Softmax Sparsemax TopK",
    masks: "Blocks Causal Dense Lengths Prefix Window",
    kernels: "using",
}
MODULES = pytest.mark.parametrize("module", PROMISED, ids=lambda module: module.__name__)


def by_case(name: str) -> tuple[bool, bool, str]:
    """Constants first, then classes, then functions and modules; each by the alphabet."""
    return not name.isupper(), not name[0].isupper(), name


@MODULES
def test_names_are_sorted_and_each_is_there_once(module: ModuleType) -> None:
    assert module.__all__ == sorted(set(module.__all__), key=by_case)


@MODULES
def test_every_name_can_be_imported(module: ModuleType) -> None:
    again = importlib.import_module(module.__name__)
    assert [name for name in module.__all__ if not hasattr(again, name)] == []


@MODULES
def test_what_was_promised_is_there(module: ModuleType) -> None:
    assert set(PROMISED[module].split()) <= set(module.__all__)


@MODULES
def test_every_public_name_says_what_it_is(module: ModuleType) -> None:
    named = {name: getattr(module, name) for name in module.__all__}
    silent = [name for name, value in named.items() if callable(value) and not value.__doc__]
    assert silent == []


def test_the_first_line_of_the_design_runs() -> None:
    names: dict[str, object] = {}
    exec("from regard import Attention, Memory, MultiHead, attend, masks, scores, selection", names)
    assert names["Attention"] is regard.Attention
