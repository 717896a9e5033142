"""Help and `init` do not import torch."""

import pytest

from tests.cli.commands import python

SCRIPT = """
import sys
from regard.cli.main import main
code = main()
heavy = {"torch", "numpy", "tokenizers", "sacrebleu", "matplotlib"} & set(sys.modules)
sys.exit(f"imported {sorted(heavy)}" if heavy else code)
"""


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["init", "--help"], ["init", "translate"], ["init", "nothing"]],
    ids=" ".join,
)
def test_nothing_heavy_is_imported(arguments: list[str]) -> None:
    said = python("-c", SCRIPT, *arguments)
    assert "imported" not in said.stderr
    assert said.returncode == (2 if "nothing" in arguments else 0)
