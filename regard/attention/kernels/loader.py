"""Load a compiled library, if it is whole and was built from the sources that are installed.

All of that is asked before the library is opened: to open a truncated one may end the process, and
to call one of other sources may give any number.
"""

import ctypes
import threading
import warnings
from functools import cache
from pathlib import Path

from regard.attention.kernels import abi
from regard.attention.kernels.signatures import declared

REBUILD = (
    "Build it again: make in a source tree, "
    "or else pip install --force-reinstall --no-deps with what was installed"
)
_first = threading.Lock()


class NativeLibraryWarning(UserWarning):
    """A compiled library was found and refused; PyTorch or a lower level serves instead."""


@cache
def opened(level: str) -> ctypes.CDLL | str | None:
    """The library of this level; why it was refused; or None if it was not built."""
    path = abi.library_path(level)
    if not path.exists():
        return None
    reason = _refusal(path, level)
    if reason is not None:
        return f"{path.name} {reason}"
    try:
        return declared(ctypes.CDLL(str(path)))
    except OSError as error:
        return f"{path.name} cannot be loaded: {error}"


def warn_once(refusal: str) -> None:
    """Say why a library is not used, and what to do; the first time in a process."""
    if _first.acquire(blocking=False):
        warnings.warn(f"{refusal}. {REBUILD}.", NativeLibraryWarning, stacklevel=2)


def _refusal(path: Path, level: str) -> str | None:
    try:
        content, expected = path.read_bytes(), abi.digest_path(path).read_bytes().strip()
        built_from = f"{abi.MARKER}{abi.abi_hash(level)}".encode()
    except OSError as error:
        return f"cannot be read with what it is compared with: {error}"
    if abi.digest(content).encode() != expected:
        return "is damaged: it does not hold the bytes that were built"
    if built_from in content:
        return None
    if not abi.sources():
        return "is refused: the C sources that it is compared with are not installed"
    return "was built from other sources, flags or signatures than those that are installed"
