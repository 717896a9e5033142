"""What happened, line by line: `log.jsonl` with no clock in it, and the timings beside it.

The log of a run that was stopped and went on equals, to the byte, that of one never stopped.
"""

import hashlib
import json
import math
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from regard.seq2seq.errors import RunError
from regard.seq2seq.system.files import open_regular

LOG, TIMINGS = "log.jsonl", "timings.jsonl"
CHUNK = 1 << 20
EMPTY = hashlib.sha256().hexdigest()
"""The SHA-256 of a log without lines."""


class Log:
    """Lines of JSON in a run's folder. Each line goes to the system as a whole, at once."""

    def __init__(self, directory: Path, size: int) -> None:
        """Go on after `size` bytes: what a run wrote after its last checkpoint is written anew."""
        self._path = directory / LOG
        create = os.O_CREAT | os.O_APPEND
        try:
            self._timings = open_regular(directory, TIMINGS, flags=os.O_WRONLY | create)
            self._log = open_regular(directory, LOG, flags=os.O_RDWR | os.O_CREAT)
            self.size = min(size, os.fstat(self._log).st_size)
            os.ftruncate(self._log, self.size)
            self._digest = self._read()
        except OSError as error:
            raise self._unwritten(error) from error
        self.lost = size - self.size
        """How many bytes are missing that should be there."""

        self._begun = time.perf_counter()

    @property
    def hash(self) -> str:
        """SHA-256 of all that is in it."""
        return self._digest.hexdigest()

    def _read(self) -> "hashlib._Hash":
        digest = hashlib.sha256()
        for start in range(0, self.size, CHUNK):
            digest.update(os.pread(self._log, min(CHUNK, self.size - start), start))
        return digest

    def write(self, step: int, line: Mapping[str, Any]) -> None:
        """Add a line, and in the other file when it was written."""
        seconds = round(time.perf_counter() - self._begun, 4)
        try:
            content = _line({"step": step, **line})
            written = 0
            while written < len(content):
                written += os.pwrite(self._log, content[written:], self.size + written)
            os.write(self._timings, _line({"step": step, "seconds": seconds}))
        except OSError as error:
            raise self._unwritten(error) from error
        self.size += len(content)
        self._digest.update(content)

    def sync(self) -> None:
        """Make sure that what was written outlives a power failure."""
        try:
            os.fsync(self._log)
        except OSError as error:
            raise self._unwritten(error) from error

    def close(self) -> None:
        """Write no more."""
        os.close(self._log)
        os.close(self._timings)

    def _unwritten(self, error: OSError) -> RunError:
        return RunError(
            f"{error.filename or self._path} cannot be written: {error.strerror}. No checkpoint is "
            "lost: mend it and run the same command again."
        )


def _line(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(_plain(content), ensure_ascii=False, allow_nan=False) + "\n").encode()


def _plain(value: Any) -> Any:
    """JSON has no number that is not finite: null stands for it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
