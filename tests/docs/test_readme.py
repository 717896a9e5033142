"""What the README says is run, and where it points there is something."""

import re
from pathlib import Path

import pytest

from regard import masks, scores, selection

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
FENCED_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?://|#)([^)#]+)(?:#[^)]*)?\)")
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
NOT_A_ROW = {
    *("Score", "Selection", "Mask", "PairIndex", "FromFunction"),
    *("as_mask", "as_score", "reinforce"),
}
"""Public names that are no mechanism of their own."""


def test_the_python_of_the_readme_runs() -> None:
    blocks = FENCED_PYTHON.findall(README.read_text())
    assert blocks
    names: dict[str, object] = {}
    for number, block in enumerate(blocks):
        exec(compile(block, f"README.md, block {number}", "exec"), names)


@pytest.mark.parametrize("room", [scores, selection, masks], ids=lambda room: room.__name__)
def test_every_mechanism_has_a_row(room) -> None:
    text = README.read_text()
    missing = [n for n in room.__all__ if n not in NOT_A_ROW and f"| `{n}` |" not in text]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    dead = [to for to in LINK.findall(page.read_text()) if not (page.parent / to).exists()]
    assert dead == []
