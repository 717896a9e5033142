"""Safe reading and writing of files in a run's folder, which is not trusted.

A file is read only if it is regular, of a bounded size and in the folder itself: no symbolic link,
pipe or device is followed, waited for or written through. The folder itself may be a link.
A refusal is an `OSError` with its reason, like any other file that cannot be read.
"""

import errno
import hashlib
import json
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

SAFE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Do not follow links; do not block on pipes."""

KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISLNK, "is a symbolic link"),
    (stat.S_ISDIR, "is a folder"),
    (stat.S_ISFIFO, "is a pipe"),
    (stat.S_ISSOCK, "is a socket"),
    (stat.S_ISCHR, "is a device"),
    (stat.S_ISBLK, "is a device"),
    (stat.S_ISREG, "is a file"),
)


def open_regular(folder: Path, *names: str, flags: int = os.O_RDONLY) -> int:
    """The descriptor of a regular file below a folder; the last name is the file's."""
    path = folder.joinpath(*names)
    parent = _open_folder(folder, names[:-1])
    try:
        # Checked before, since opening a device may act; and after, since the file may change.
        with suppress(FileNotFoundError):
            _check(os.stat(names[-1], dir_fd=parent, follow_symlinks=False), stat.S_ISREG, path)
        handle = os.open(names[-1], flags | SAFE, 0o666, dir_fd=parent)
    except OSError as error:
        raise _named(error, path) from error
    finally:
        os.close(parent)
    try:
        _check(os.fstat(handle), stat.S_ISREG, path)
    except OSError:
        os.close(handle)
        raise
    return handle


def read_regular(folder: Path, *names: str, limit: int) -> bytes:
    """The content of a regular file below a folder, of at most so many bytes."""
    with open(open_regular(folder, *names), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            path = folder.joinpath(*names)
            message = f"it has {size:,} bytes; the limit is {limit:,}"
            raise OSError(errno.EFBIG, message, str(path))
        return file.read(size)


def list_folder(folder: Path, *names: str) -> list[str]:
    """The names in a folder below a folder, sorted; none if it is not there."""
    try:
        handle = _open_folder(folder, names)
    except FileNotFoundError:
        return []
    try:
        return sorted(os.listdir(handle))
    finally:
        os.close(handle)


def write_atomic(folder: Path, name: str, content: bytes) -> None:
    """Write a temporary file and rename it: a reader sees the old file or the new one."""
    part = folder / f".{name}.{os.getpid()}.part"
    with suppress(FileNotFoundError):
        part.unlink()  # it might be a link
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | SAFE, 0o666)
    try:
        with open(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(handle)
        os.replace(part, folder / name)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def parse_json(content: bytes | str) -> Any:
    """Parse strict JSON; whatever is wrong with it is a `ValueError`."""
    try:
        return json.loads(content, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def sha256(content: bytes) -> str:
    """SHA-256 in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def _open_folder(folder: Path, names: tuple[str, ...]) -> int:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for depth, name in enumerate(names, start=1):
        path = folder.joinpath(*names[:depth])
        parent = handle
        try:
            _check(os.stat(name, dir_fd=parent, follow_symlinks=False), stat.S_ISDIR, path)
            handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY | SAFE, dir_fd=parent)
        except OSError as error:
            raise _named(error, path) from error
        finally:
            os.close(parent)
    return handle


def _check(found: os.stat_result, allowed: Callable[[int], bool], path: Path) -> None:
    if not allowed(found.st_mode):
        kind = next((words for is_kind, words in KINDS if is_kind(found.st_mode)), "is not a file")
        needed = "a folder" if allowed is stat.S_ISDIR else "a file"
        raise OSError(errno.EINVAL, f"it {kind}, not {needed} of the run's own", str(path))


def _named(error: OSError, path: Path) -> OSError:
    """The same error, of the same class, with the full path."""
    return OSError(error.errno, error.strerror, str(path))


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")
