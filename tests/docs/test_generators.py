"""No generator holds a mode on while it waits: whoever asks it would work under that mode."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "regard"
HARMLESS = {"open", "closing", "suppress"}
"""What may be held between two items: an open file, say, changes nothing for anybody else."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
Scope = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def held(source: str) -> list[str]:
    """Each `with` of a generator around a `yield`, or around a generator that is returned."""
    return [
        f"{function.name}, line {item.context_expr.lineno}: {ast.unparse(item.context_expr)}"
        for function in ast.walk(ast.parse(source))
        if isinstance(function, Function) and not _is_manager(function)
        for block in _own(function)
        if isinstance(block, ast.With | ast.AsyncWith) and any(map(_waits, _own(block)))
        for item in block.items
        if _called(item.context_expr) not in HARMLESS
    ]


def _waits(node: ast.AST) -> bool:
    """Does work go on elsewhere from here, with more of it to come?"""
    returned = isinstance(node, ast.Return) and isinstance(node.value, ast.GeneratorExp)
    return returned or isinstance(node, ast.Yield | ast.YieldFrom)


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """Everything inside that is not inside another function."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, Scope):
            yield from _own(child)


def _is_manager(function: Function) -> bool:
    return any("contextmanager" in ast.unparse(each) for each in function.decorator_list)


def _called(expression: ast.expr) -> str:
    name = expression.func if isinstance(expression, ast.Call) else expression
    return name.attr if isinstance(name, ast.Attribute) else ast.unparse(name)


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("def f():\n with no_grad():\n  yield 1", 1),
        ("def f():\n with a(), b():\n  yield from g()", 2),
        ("def f():\n with no_grad():\n  return (x for x in y)", 1),
        ("def f():\n with no_grad():\n  x = 1\n yield x", 0),
        ("def f():\n with p.open() as file:\n  yield from file", 0),
        ("@contextmanager\ndef f():\n with no_grad():\n  yield 1", 0),
        ("def f():\n with no_grad():\n  def g():\n   yield 1\n  return list(g())", 0),
    ],
)
def test_what_is_held_is_found(source: str, count: int) -> None:
    assert len(held(source)) == count


def test_no_generator_of_the_package_holds_a_mode() -> None:
    found = {
        str(path.relative_to(PACKAGE)): each
        for path in sorted(PACKAGE.rglob("*.py"))
        if (each := held(path.read_text(encoding="utf-8")))
    }
    assert not found
