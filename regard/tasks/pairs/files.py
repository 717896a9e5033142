"""Files of a run's folder, each whole or not there."""

import os
from collections.abc import Callable
from pathlib import Path


def keep(path: Path, write: Callable[[Path], object]) -> None:
    """Have a file written beside its place, then put it there; a reader never sees half of it."""
    part = path.with_name(f".{path.name}.part")
    write(part)
    os.replace(part, path)


def keep_text(path: Path, text: str) -> None:
    """The same for a text."""
    keep(path, lambda part: part.write_text(text, encoding="utf-8"))
