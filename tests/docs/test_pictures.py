"""Every picture of the page is there, is small, and has the command that made it beside it."""

import re
import struct
from pathlib import Path

import pytest

from regard.tasks.plots.figures import VIEWS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "pictures.md").read_text(encoding="utf-8")
PICTURES = re.findall(r"!\[[^\]]+\]\((images/[^)]+)\)", PAGE)


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_is_small_and_has_its_command(name: str) -> None:
    data = (DOCS / name).read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) < 150_000
    assert max(struct.unpack(">II", data[16:24])) < 3000
    commands = [line for line in PAGE.splitlines() if line.startswith("    ")]
    assert any(f"docs/{name}" in command for command in commands)


def test_every_kind_is_there() -> None:
    assert len(PICTURES) >= len(VIEWS) + 1
    for view in set(VIEWS) - {"heat"}:
        assert f"--view {view}" in PAGE
