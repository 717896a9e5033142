"""Files that must exist; an error names the nearest name that does."""

import difflib
import os
from pathlib import Path

from regard.seq2seq.errors import DataError


def require_file(path: str) -> str:
    """The path, or an error that names the nearest one that exists."""
    here = Path(path)
    if here.is_dir():
        raise DataError(f"{path} is a folder. Give a file of examples in it.")
    if here.exists():
        return path
    folder = here.parent
    if not folder.is_dir():
        raise DataError(
            f"there is no file {path}: the folder {folder} does not exist.{_hint(folder)}"
        )
    raise DataError(f"there is no file {path}.{_hint(here)}")


def _hint(path: Path) -> str:
    """The nearest name in the same folder."""
    try:
        names = os.listdir(path.parent)
    except OSError:
        names = []
    if near := difflib.get_close_matches(path.name, sorted(names), n=1):
        return f" Did you mean {path.parent / near[0]}?"
    return " Check the path."
