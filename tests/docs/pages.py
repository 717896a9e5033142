"""The pages, and what is in them: blocks of Python, commands, links, anchors."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
FENCED_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?:\]\(|src=\")(?!https?://)([^)#\"]*)(#[^)\"]*)?[)\"]")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def python_blocks(page: Path) -> list[str]:
    return FENCED_PYTHON.findall(text_of(page))


def links(page: Path) -> list[tuple[str, str]]:
    """The path and the anchor of each link that is not to another host."""
    return LINK.findall(FENCE.sub("", text_of(page)))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub and MyST make them."""
    return {
        re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        for heading in HEADING.findall(FENCE.sub("", text_of(page)))
    }


def commands(text: str) -> Iterator[list[str]]:
    """The arguments of each `regard …` that a page says to type, continuation lines joined."""
    joined = re.sub(r"\\\n\s*", "", text)
    for line in joined.splitlines():
        if not line.startswith("    ") or "regard " not in line:
            continue
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|<>;&")
        lexer.whitespace_split = True
        words: list[str] = []
        for word in [*lexer, ";"]:
            if set(word) <= set("|<>;&"):
                if words and Path(words[0]).name == "regard":
                    yield words[1:]
                words = []
            else:
                words.append(word)


def pages_with_python() -> list[Path]:
    return [page for page in PAGES if python_blocks(page)]
