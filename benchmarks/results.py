"""Results as JSON: one file a benchmark, whole or not there."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"

Row = dict[str, Any]
Result = dict[str, Any]


def write(folder: Path, result: Result) -> Path:
    """Put a result into its file; a reader sees the old one or the new one."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result['name']}.json"
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".", suffix=".tmp")
    with os.fdopen(handle, "w") as file:
        json.dump(result, file, indent=1, ensure_ascii=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
    Path(temporary).chmod(0o644)
    Path(temporary).replace(path)
    return path


def read(folder: Path) -> dict[str, Result]:
    """All results of a folder, by name."""
    found = (json.loads(path.read_text()) for path in sorted(folder.glob("*.json")))
    return {result["name"]: result for result in found}
