"""The log of a run, as JSON lines: `log.jsonl` without times, and `timings.jsonl`.

The log of a resumed run is byte-identical to that of an uninterrupted one.
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
    """JSON lines in a run's folder. Each line is one unbuffered write."""

    def __init__(self, directory: Path, size: int) -> None:
        """Resume after `size` bytes: what was logged after the last checkpoint is overwritten."""
        self._path = directory / LOG
        create = os.O_CREAT | os.O_APPEND
        try:
            self._timings = open_regular(directory, TIMINGS, flags=os.O_WRONLY | create)
            self._log = open_regular(directory, LOG, flags=os.O_RDWR | os.O_CREAT)
            self.size = min(size, os.fstat(self._log).st_size)
            os.ftruncate(self._log, self.size)
            self._digest = self._read()
        except OSError as error:
            raise self._write_error(error) from error
        self.lost = size - self.size
        """How many bytes of the log are missing."""

        self._start = time.perf_counter()

    @property
    def hash(self) -> str:
        """SHA-256 of the log."""
        return self._digest.hexdigest()

    def _read(self) -> "hashlib._Hash":
        digest = hashlib.sha256()
        for start in range(0, self.size, CHUNK):
            digest.update(os.pread(self._log, min(CHUNK, self.size - start), start))
        return digest

    def write(self, step: int, line: Mapping[str, Any]) -> None:
        """Append a line, and its time to the timings."""
        seconds = round(time.perf_counter() - self._start, 4)
        try:
            content = _line({"step": step, **line})
            written = 0
            while written < len(content):
                written += os.pwrite(self._log, content[written:], self.size + written)
            os.write(self._timings, _line({"step": step, "seconds": seconds}))
        except OSError as error:
            raise self._write_error(error) from error
        self.size += len(content)
        self._digest.update(content)

    def sync(self) -> None:
        """Flush to disk."""
        try:
            os.fsync(self._log)
        except OSError as error:
            raise self._write_error(error) from error

    def close(self) -> None:
        """Close both files."""
        os.close(self._log)
        os.close(self._timings)

    def _write_error(self, error: OSError) -> RunError:
        return RunError(
            f"{error.filename or self._path} cannot be written: {error.strerror}. No checkpoint is "
            "lost: repair it and run the same command again."
        )


def _line(content: Mapping[str, Any]) -> bytes:
    text = json.dumps(_nonfinite_to_null(content), ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode()


def _nonfinite_to_null(value: Any) -> Any:
    """JSON has no NaN or infinity: null stands for them."""
    if isinstance(value, Mapping):
        return {str(key): _nonfinite_to_null(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_nonfinite_to_null(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
