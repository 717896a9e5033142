"""Every page: its Python runs, its commands parse, its links and anchors lead somewhere."""

from pathlib import Path

import pytest

from regard.cli.main import _command
from tests.cli.commands import regard
from tests.docs.pages import (
    DOCS,
    PAGES,
    ROOT,
    anchors,
    commands,
    links,
    pages_with_python,
    python_blocks,
    text_of,
)

HISTORY = {DOCS / "failures.md", ROOT / "CHANGELOG.md"}
"""They name options of their time."""


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.fixture(scope="module")
def with_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny run at runs/first, which the pages load."""
    folder = tmp_path_factory.mktemp("pages")
    words = ["one", "two", "three", "four", "five", "six", "seven"]
    lines = [f"{a} {b}\t{b} {a}\n" for a in words for b in words]
    (folder / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    settings = ["training.steps=3", "model.kind=luong", "text.kind=characters"]
    options = [part for each in settings for part in ("--set", each)]
    arguments = ["--data", "pairs.tsv", "--out", "runs/first", *options]
    done = regard("train", "translate", *arguments, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.parametrize("page", pages_with_python(), ids=name)
def test_the_python_of_a_page_runs(
    page: Path, with_runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the order of the page, with the names of the blocks before."""
    monkeypatch.chdir(with_runs)
    names: dict[str, object] = {"__name__": "page"}
    for number, block in enumerate(python_blocks(page)):
        exec(compile(block, f"{page.name}, block {number}", "exec"), names)


@pytest.mark.parametrize("page", sorted({*PAGES} - HISTORY), ids=name)
def test_the_commands_of_a_page_parse(page: Path) -> None:
    group = _command()
    for verb, *rest in commands(text_of(page)):
        if verb in ("--version", "--help"):
            continue
        assert verb in group.commands, verb
        group.commands[verb].make_context(verb, list(rest))


def test_commands_are_found_and_a_wrong_option_is_refused() -> None:
    page = "    echo 'a|b' | .venv/bin/regard predict r \\\n        --beam 5 > out  # why\n"
    assert list(commands(page)) == [["predict", "r", "--beam", "5"]]
    assert sum(len(list(commands(text_of(page)))) for page in PAGES) > 40
    with pytest.raises(Exception, match="--bean"):
        _command().commands["predict"].make_context("predict", ["r", "--bean", "5"])


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_and_anchors_lead_somewhere(page: Path) -> None:
    for path, anchor in links(page):
        target = page.parent / path if path else page
        assert target.exists(), path
        if anchor and target.suffix == ".md":
            assert anchor[1:] in anchors(target), f"{path}{anchor}"
