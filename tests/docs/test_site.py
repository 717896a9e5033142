"""The site builds without a warning, has every page and public name, and asks no other host."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from sphinx.util.inventory import InventoryFile

import regard
from regard import errors, kernels, masks, scores, selection
from regard.seq2seq import alignment
from tests.docs.pages import DOCS, ROOT

LOADS = re.compile(
    r"""<(?:script|img|iframe|source|video|audio|embed|object)\b[^>]*\b(?:src|srcset|data)\s*=\s*["']?(?:https?:)?//[^"'\s>]+"""
    r"""|<link\b[^>]*\bhref\s*=\s*["']?(?:https?:)?//[^"'\s>]+"""
    r"""|url\(\s*["']?(?:https?:)?//[^)]+"""
    r"""|@import\s+["'](?:https?:)?//[^"']+"""
    r"""|(?:fetch|import|importScripts)\(\s*["'`](?:https?:)?//[^"'`]+"""
    r"""|\bfrom\s*["'](?:https?:)//[^"']+""",
    re.IGNORECASE,
)
"""What a browser asks for by itself. A link that a person may click is none of it."""

ADDRESS = re.compile(r"https?://[\w.-]+")
NEVER_ASKED = {
    "http://www.w3.org",  # the name of SVG
    "https://snowballstem.org",  # a comment
    "https://developer.mozilla.org",  # a comment
}
"""Addresses in the theme's scripts and styles that are no requests."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-d", str(folder / "doctrees")]
    command += [str(DOCS), str(folder / "html")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder / "html"


def test_every_page_is_in_it(site: Path) -> None:
    pages = {page.relative_to(DOCS) for page in DOCS.rglob("*.md")} - {Path("images/README.md")}
    assert [page for page in pages if not (site / page).with_suffix(".html").exists()] == []


def test_it_asks_no_other_host(site: Path) -> None:
    files = [path for path in site.rglob("*") if path.suffix in (".html", ".css", ".js", ".svg")]
    assert len(files) > 30
    asked = {str(f.relative_to(site)): LOADS.findall(f.read_text("utf-8")) for f in files}
    assert {name: found for name, found in asked.items() if found} == {}


def test_scripts_and_styles_know_no_other_host(site: Path) -> None:
    """A script may put an address together and ask later, so it may not even hold one."""
    files = [path for path in site.rglob("*") if path.suffix in (".css", ".js")]
    texts = [file.read_text("utf-8") for file in files if file.name != "searchindex.js"]
    assert {found for text in texts for found in ADDRESS.findall(text)} <= NEVER_ASKED


@pytest.mark.parametrize(
    "text",
    [
        '<script async src="https://cdn.example/a.js">',
        "<link rel=stylesheet href=//fonts.example/css>",
        '@import "https://fonts.example/a.css";',
        "src: url(https://fonts.example/a.woff2)",
        'fetch("https://api.example/stars")',
        '<img alt="" src="http://a.example/b.png">',
    ],
)
def test_a_request_is_found(text: str) -> None:
    assert LOADS.search(text)
    assert not LOADS.search('<a class="x" href="https://arxiv.org/abs/1409.0473">')


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="").data
    known = {name for kind in inventory for name in inventory[kind]}
    modules = (masks, scores, selection, kernels, alignment)
    wanted = {f"{module.__name__}.{name}" for module in modules for name in module.__all__}
    wanted |= {f"regard.{n}" for n in regard.__all__ if callable(getattr(regard, n))}
    wanted |= {f"{errors.__name__}.{n}" for n, v in vars(errors).items() if isinstance(v, type)}
    assert sorted(wanted - known) == []


def test_the_citation_has_the_version_and_no_person() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert f'version = "{cited["version"]}"' in project
    assert cited["authors"] == [{"name": "The regard developers"}]
    assert f"version = {{{cited['version']}}}" in (DOCS / "cite.md").read_text("utf-8")
