"""Names in the package: a class name occurs once, and docs/glossary.md is followed."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "regard"
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
C_FUNCTION = re.compile(r"^[a-z_][\w \t*]*?[ \t*](\w+)\([^;{]*\)\s*\{", re.MULTILINE)
FIELD_TERMS = ("straight_through",)
"""Terms of the field that contain such a word: the estimator of Bengio 2013."""


def _section(title: str) -> list[list[str]]:
    """The rows of a table of the glossary, without its head."""
    text = GLOSSARY.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    return rows[2:]


NOT = {word.lower() for _, words in _section("Say / not") for word in re.findall(r"`(\w+)`", words)}
SOURCES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}


def _words(name: str) -> set[str]:
    for term in FIELD_TERMS:
        name = name.replace(term, "")
    return {word.lower() for word in WORD.findall(name)}


def _advised_against(name: str) -> bool:
    return bool(_words(name) & NOT)


def _place(path: Path, line: int = 0) -> str:
    return str(path.relative_to(ROOT)) + (f":{line}" if line else "")


def _definitions() -> Iterator[tuple[str, str]]:
    """Every module, class and function of the package, in C, too: its name and its place."""
    for path in PACKAGE.rglob("*"):
        if path.is_dir() or path.suffix in (".py", ".c", ".h"):
            yield path.stem, _place(path)
        if path.suffix in (".c", ".h"):
            text = path.read_text(encoding="utf-8")
            for found in C_FUNCTION.finditer(text):
                yield found[1], _place(path, text.count("\n", 0, found.start()) + 1)
    for path, tree in SOURCES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield node.name, _place(path, node.lineno)


def _classes() -> dict[str, list[str]]:
    found = defaultdict(list)
    for path, tree in SOURCES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(_place(path, node.lineno))
    return found


def _aliases() -> Iterator[tuple[str, str]]:
    """Names in capitals and small letters that a module assigns: type aliases, type variables."""
    for path, tree in SOURCES.items():
        for node in tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else ()
            for target in targets:
                if isinstance(target, ast.Name) and re.match(r"_?[A-Z]\w*[a-z]", target.id):
                    yield target.id, _place(path, node.lineno)


def test_a_class_name_occurs_once() -> None:
    assert {name: places for name, places in _classes().items() if len(places) > 1} == {}


def test_no_alias_has_the_name_of_a_class() -> None:
    classes = _classes()
    assert {place: name for name, place in _aliases() if name in classes} == {}


def test_no_name_is_advised_against() -> None:
    offenders = {place: name for name, place in _definitions() if _advised_against(name)}
    assert offenders == {}


def test_the_glossary_has_current_names_only() -> None:
    """A term in code font is defined somewhere in the package."""
    defined = {name for name, _ in _definitions()}
    rows = chain.from_iterable(map(_section, ("Attention", "Toolkit", "Tasks")))
    terms = {term for row in rows for term in re.findall(r"`(\w+)`", " ".join(row))}
    assert len(terms) > 30
    assert terms - defined == set()


@pytest.mark.parametrize("name", ["told", "_told", "TurnedLinear", "read_again", "judge", "Whole"])
def test_a_word_that_is_advised_against_is_found(name: str) -> None:
    assert _advised_against(name)


@pytest.mark.parametrize(
    "name", ["_straight_through", "thinking", "returned", "sentence", "trailing"]
)
def test_a_part_of_a_word_is_no_word(name: str) -> None:
    assert not _advised_against(name)
