"""The README, the pages of library and toolkit: figures are measured, nothing is left out."""

import re
from pathlib import Path

import pytest

from regard import masks, scores, selection
from regard.cli.main import app
from regard.tasks.registry import entries

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
LIBRARY = ROOT / "docs" / "library.md"
TOOLKIT = ROOT / "docs" / "toolkit.md"
BENCHMARKS = ROOT / "docs" / "benchmarks.md"
FIGURE = re.compile(r"\d[\d.,–]*(?<=\d)")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NOT_A_ROW = {
    *("Score", "Selection", "Mask", "PairIndex", "FromFunction"),
    *("as_mask", "as_score", "as_selection", "reinforce"),
}
"""Public names that are no mechanism of their own."""


def test_the_figures_of_the_readme_are_measured() -> None:
    """They are on the front page of the benchmarks, which is written from the results."""
    benefits = README.read_text().split("\n- ")[1:4]
    assert all(benefit.startswith("**") for benefit in benefits)
    benefits[-1] = benefits[-1].partition("\n\n")[0]
    measured = set(FIGURE.findall(BENCHMARKS.read_text()))
    for benefit in benefits:
        figures = set(FIGURE.findall(re.sub(r"float32|Multi30k|kill -9", "", benefit)))
        assert figures
        assert figures <= measured


def test_the_readme_stays_short() -> None:
    assert len(README.read_text().splitlines()) <= 120


def test_the_toolkit_has_every_task() -> None:
    named = re.search(r"Tasks are (.*)\.$", TOOLKIT.read_text(), re.MULTILINE)
    assert named is not None
    assert re.findall(r"`(\w+)`", named[1]) == list(entries())


def test_the_toolkit_has_every_verb() -> None:
    verbs = set(re.findall(r"^\| `regard (\w+)", TOOLKIT.read_text(), re.MULTILINE))
    assert verbs == {command.callback.__name__ for command in app.registered_commands}


@pytest.mark.parametrize("room", [scores, selection, masks], ids=lambda room: room.__name__)
def test_every_mechanism_has_a_row(room) -> None:
    text = LIBRARY.read_text()
    missing = [n for n in room.__all__ if n not in NOT_A_ROW and f"| `{n}` |" not in text]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_exist(page: Path) -> None:
    """A path in code font is one of the repository; results name paths of their time."""
    named = re.findall(r"`((?:regard|tests|docs|benchmarks)/[\w./-]+)`", page.read_text())
    assert [path for path in named if not (ROOT / path).exists()] == []
