"""How many cases are drawn, and how many tensors were compared."""

import os
from pathlib import Path

import pytest

from regard.native import loader
from tests.fuzz.compare import COUNT

CASES = int(os.environ.get("REGARD_FUZZ", "6"))
"""Of each kind and level of processor."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        metafunc.parametrize("seed", range(CASES))
    if "level" in metafunc.fixturenames:
        metafunc.parametrize("level", range(loader.level() + 1), ids=loader.LEVELS.__getitem__)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if COUNT.compared:
        terminalreporter.write_line(f"{COUNT.compared} comparisons with float64")
    if noted := os.environ.get("REGARD_FUZZ_COUNT"):
        Path(noted).write_text(str(COUNT.compared))
