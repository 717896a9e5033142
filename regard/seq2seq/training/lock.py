"""A file lock: one process at a time trains in a run's folder."""

import fcntl
import os
from pathlib import Path
from types import TracebackType

from regard.seq2seq.errors import RunError
from regard.seq2seq.system.files import open_regular

NAME = "run.lock"


class Lock:
    """Held within a `with` block; the system releases it when the process dies.

    The file is not deleted: otherwise two processes could lock two files of the same name.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._handle: int | None = None

    def __enter__(self) -> "Lock":
        path = self._directory / NAME
        try:
            self._handle = open_regular(self._directory, NAME, flags=os.O_RDWR | os.O_CREAT)
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._handle, 0)
            os.pwrite(self._handle, f"{os.getpid()}\n".encode(), 0)
        except BlockingIOError as error:
            holder = self._holder()
            self._close()
            raise RunError(
                f"process {holder} is training in {self._directory}. "
                "Wait until it ends, or stop it first."
            ) from error
        except OSError as error:
            self._close()
            raise RunError(
                f"{path} cannot be locked: {error.strerror}. Give a folder that can be written to."
            ) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def _holder(self) -> str:
        """The id of the process that holds it, from the file."""
        assert self._handle is not None
        content = os.pread(self._handle, 20, 0).strip()
        return content.decode() if content.isdigit() else "unknown"

    def _close(self) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
