"""The command in a process of its own, as a user runs it."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIGHT = f"""
import sys, types
package = types.ModuleType("regard")
package.__path__ = [{str(ROOT / "regard")!r}]
sys.modules["regard"] = package
"""
"""The package without its public names, which import torch: what the command line adds to it."""

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "100"}


def regard(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`regard …`."""
    script = f"{LIGHT}\nfrom regard.cli.main import main\nsys.exit(main())"
    return python("-c", script, *arguments, cwd=cwd)


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
