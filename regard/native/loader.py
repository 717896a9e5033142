"""Load the compiled library for this processor, if it is intact and built from these sources.

All of that is checked before a library is opened: opening a truncated one may end the process, and
calling one of other sources may return anything.
"""

import ctypes
import threading
import warnings
from functools import cache
from pathlib import Path

from regard.native import abi
from regard.native.signatures import declare

LEVELS = ("plain C", "AVX2", "AVX-512")
"""Instruction sets, lowest first; `abi.LEVELS` has the compiler's flags in the same order."""

REBUILD = (
    "Build it again: make in a source tree, "
    "or else pip install --force-reinstall --no-deps with what was installed"
)
_first_warning = threading.Lock()


class NativeLibraryWarning(UserWarning):
    """A compiled library was found and rejected; PyTorch or a lower level serves instead."""


def library() -> ctypes.CDLL | None:
    """The library for this processor; None if it was not built, or is rejected."""
    return _library_at(level())


def require() -> ctypes.CDLL:
    """The library, for a caller that has asked `usable` before."""
    found = library()
    assert found is not None, "compiled code was called, but the C extension was not built"
    return found


@cache
def level() -> int:
    """Index in `LEVELS` of the best instruction set that this processor has and that was built."""
    lowest = _library_at(0)
    highest = 0 if lowest is None else int(lowest.regard_level())
    return next(level for level in range(highest, -1, -1) if level == 0 or _library_at(level))


@cache
def is_amd() -> bool:
    """Is the processor one of AMD's?

    They have adders beside their multipliers, for vectors of any width; and torch's matrix
    products run below their peak.
    """
    return bool(require().regard_is_amd())


def rejections() -> list[str]:
    """Why libraries that were built are not used, from the lowest level up."""
    found = (_open(suffix) for suffix in abi.LEVELS)
    return [reason for reason in found if isinstance(reason, str)]


@cache
def _library_at(level: int) -> ctypes.CDLL | None:
    found = _open([*abi.LEVELS][level])
    if isinstance(found, str):
        _warn_once(found)
        return None
    return found


@cache
def _open(suffix: str) -> ctypes.CDLL | str | None:
    """The library of this level; why it was rejected; or None if it was not built."""
    path = abi.library_path(suffix)
    if not path.exists():
        return None
    reason = _rejection(path, suffix)
    if reason is not None:
        return f"{path.name} {reason}"
    try:
        return declare(ctypes.CDLL(str(path)))
    except OSError as error:
        return f"{path.name} cannot be loaded: {error}"


def _warn_once(rejection: str) -> None:
    """Say why a library is not used, and what to do; the first time in a process."""
    if _first_warning.acquire(blocking=False):
        warnings.warn(f"{rejection}. {REBUILD}.", NativeLibraryWarning, stacklevel=2)


def _rejection(path: Path, suffix: str) -> str | None:
    try:
        content, expected = path.read_bytes(), abi.digest_path(path).read_bytes().strip()
        built_from = f"{abi.MARKER}{abi.abi_hash(suffix)}".encode()
    except OSError as error:
        return f"cannot be read with what it is compared with: {error}"
    if abi.digest(content).encode() != expected:
        return "is damaged: its bytes are not those that were built"
    if built_from in content:
        return None
    if not abi.sources():
        return "is rejected: the C sources that it is compared with are not installed"
    return "was built from other sources, flags or signatures than those that are installed"
