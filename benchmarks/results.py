"""Results as JSON: one summary row a case, a line each; every round goes elsewhere, if wanted."""

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
SPREAD = ("median", "low", "high")
SPREADS = ("wall", "cpu", "times", "over_one", "rate", "against_torch")
"""Fields that are a median with its spread: in a file a list of the three."""

RAW = ("samples", "calls", "times_cpu")
"""Fields that no page shows: in raw files only."""

OURS_ALONE = ("cpu", "share", "over_one")
"""Fields that pages show of regard only."""

Row = dict[str, Any]
Result = dict[str, Any]


def write(folder: Path, result: Result) -> Path:
    """Put a result's summary into its file, atomically."""
    return _replace(folder, f"{result['name']}.json", _summary_text(result))


def write_raw(folder: Path, result: Result) -> Path:
    """Put a result with every round of it into its file, atomically."""
    return _replace(folder, f"{result['name']}.json", json.dumps(result, ensure_ascii=False) + "\n")


def read(folder: Path) -> dict[str, Result]:
    """All results of a folder, by name."""
    found = (json.loads(path.read_text()) for path in sorted(folder.glob("*.json")))
    return {result["name"]: {**result, "rows": list(_rows(result["rows"]))} for result in found}


def summary(rows: Sequence[Row]) -> list[Row]:
    """One row a case, with what each side's row has beside the case."""
    found: list[Row] = []
    for case, same in groupby(rows, key=lambda row: json.dumps(row.get("case"))):
        sides = [_packed(row) for row in same]
        found += sides if case == "null" else [{"case": json.loads(case), "sides": sides}]
    return found


def _rows(cases: Sequence[Row]) -> Iterator[Row]:
    """The inverse of `summary`, but for the fields that are in raw files only."""
    for each in cases:
        if "sides" not in each:
            yield _unpacked(each)
        for side in each.get("sides", ()):
            yield {"case": each["case"], **_unpacked(side)}


def _packed(row: Row) -> Row:
    races = bool(row.get("case")) and row.get("who") != "regard"
    left = (*RAW, "case", *(OURS_ALONE if races else ()))
    found = {name: value for name, value in row.items() if name not in left}
    for name in SPREADS:
        if name in found:
            found[name] = [found[name][part] for part in SPREAD]
    if "share" in found:
        found["share"] = {n: [each[part] for part in SPREAD] for n, each in found["share"].items()}
    return found


def _unpacked(side: Row) -> Row:
    found = dict(side)
    for name in SPREADS:
        if name in found:
            found[name] = dict(zip(SPREAD, found[name], strict=True))
    if "share" in found:
        shares = found["share"].items()
        found["share"] = {name: dict(zip(SPREAD, each, strict=True)) for name, each in shares}
    return found


def _summary_text(result: Result) -> str:
    """One line a field, and in lists of records one line a record: differences stay readable."""
    parts = []
    for name, value in {**result, "rows": summary(result["rows"])}.items():
        written = _dumped(value)
        if value and isinstance(value, list) and isinstance(value[0], dict):
            written = "[\n  " + ",\n  ".join(map(_dumped, value)) + "\n ]"
        parts.append(f" {_dumped(name)}: {written}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _replace(folder: Path, name: str, text: str) -> Path:
    """Write a temporary file and rename it: a reader sees the old file or the new one."""
    folder.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".", suffix=".tmp")
    with os.fdopen(handle, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    Path(temporary).chmod(0o644)
    Path(temporary).replace(folder / name)
    return folder / name
