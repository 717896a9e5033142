"""The command in a process of its own, as a user runs it."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "100"}


def regard(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`regard …`."""
    return python("-m", "regard", *arguments, cwd=cwd)


def python(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`python …`, with this package to be found."""
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=ENVIRONMENT,
        cwd=cwd,
        timeout=60,
        check=False,
    )
