"""Files of a run's folder, which somebody may have put there who is not us.

A file is read only if it is regular, of a bounded size, and lies in the folder itself: no symbolic
link, pipe or device is ever followed, waited for or written through. The folder may be a link.
What is refused is an `OSError` with its reason, like any other file that cannot be read.
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
"""Neither follow a link nor wait for whoever writes to a pipe."""

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
        # Looked at before, for a device may act when it is opened; and after, for there was time.
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
            told = f"it has {size:,} bytes where {limit:,} are the most"
            raise OSError(errno.EFBIG, told, str(path))
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


def write_whole(folder: Path, name: str, content: bytes) -> None:
    """Write a file beside its place, then put it there: a reader never sees half of it."""
    part = folder / f".{name}.{os.getpid()}.part"
    with suppress(FileNotFoundError):
        part.unlink()  # a link, say, which is not written through
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
    """What JSON says; a `ValueError` for whatever is wrong with it."""
    try:
        return json.loads(content, parse_constant=_no_number)
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
        told = next((words for is_kind, words in KINDS if is_kind(found.st_mode)), "is no file")
        needed = "a folder" if allowed is stat.S_ISDIR else "a file"
        raise OSError(errno.EINVAL, f"it {told}, not {needed} of the run's own", str(path))


def _named(error: OSError, path: Path) -> OSError:
    """The same error with the whole path, of its own class still."""
    return OSError(error.errno, error.strerror, str(path))


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number")
