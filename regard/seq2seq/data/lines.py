"""Random access to the lines of a text file, without holding its text in memory."""

import gzip
import hashlib
import os
import stat
import sys
import tempfile
import weakref
import zlib
from collections.abc import Iterator, Sequence
from typing import IO, Protocol, overload, runtime_checkable

import numpy as np

from regard.seq2seq.batch import Fault
from regard.seq2seq.data.fault_text import excerpt
from regard.seq2seq.data.paths import require_file
from regard.seq2seq.errors import DataError

CHUNK = 1 << 20
LINE = 1 << 20
"""Maximum bytes of a line; no more of one is ever read."""

ENDLESS = 1 << 26
"""Maximum bytes without a newline in a stream, which may be endless."""

BOM = b"\xef\xbb\xbf"
GZIP = b"\x1f\x8b"  # never the beginning of UTF-8 text
UTF16 = (b"\xff\xfe", b"\xfe\xff")  # its byte order marks


@runtime_checkable
class ByteStream(Protocol):
    """A readable stream of bytes."""

    def read(self, size: int = -1, /) -> bytes: ...


def read_lines(path: str) -> "Lines":
    """The lines of a file, plain or gzip; `-` is standard input.

    Streams that cannot be read twice (gzip, pipes) are spooled to a temporary file.
    """
    if path == "-":
        with _spooled(sys.stdin.buffer, "standard input") as spool:
            return _gunzip(spool, "standard input")
    try:
        with open(require_file(path), "rb") as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return _gunzip(file, path)
            with _spooled(file, path) as spool:
                return _gunzip(spool, path)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error


def _gunzip(file: IO[bytes], name: str) -> "Lines":
    head = file.read(2)
    file.seek(0)
    if head != GZIP:
        return Lines(os.dup(file.fileno()), name)
    with gzip.GzipFile(fileobj=file) as inner, _spooled(inner, name) as spool:
        return Lines(os.dup(spool.fileno()), name)


def _spooled(stream: ByteStream, name: str) -> IO[bytes]:
    """A copy in an anonymous temporary file, deleted when it is closed."""
    spool = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it
    try:
        _copy(stream, spool, name)
        spool.flush()
        spool.seek(0)
    except DataError:
        spool.close()
        raise
    except (OSError, EOFError, zlib.error) as error:
        spool.close()
        raise DataError(
            f"{name} cannot be decompressed or spooled: {error}. "
            "Is it complete, and is there room for temporary files?"
        ) from error
    return spool


def _copy(stream: ByteStream, spool: IO[bytes], name: str) -> None:
    """Copy all; raise if a line does not end, which would fill the disk."""
    lines = waiting = 0
    while chunk := stream.read(CHUNK):
        spool.write(chunk)
        end = chunk.rfind(b"\n")
        lines += chunk.count(b"\n")
        waiting = waiting + len(chunk) if end < 0 else len(chunk) - end - 1
        if waiting > ENDLESS:
            raise DataError(
                f"{name}, line {lines + 1}: more than {ENDLESS} bytes without a newline. "
                "Give text, one example a line."
            )


class Lines(Sequence[str]):
    r"""The lines of an open file; they end at `\n` and nowhere else.

    A byte order mark, and a CR before the `\n`, are removed. Only line offsets are held in memory,
    never text. Invalid UTF-8 is read as `U+FFFD` and reported by `fault`. Of a line longer than
    `LINE` only the beginning is ever read.
    """

    def __init__(self, descriptor: int, path: str) -> None:
        """Own the descriptor, and scan the file once."""
        weakref.finalize(self, os.close, descriptor)
        self.path = path
        self._descriptor = descriptor
        scan = _Scan(descriptor)
        self._starts, self._size = scan.starts(), scan.size
        self._bad = frozenset(scan.bad)
        self._mark, self._returns = scan.mark, scan.returns
        self.digest = scan.digest.hexdigest()
        """SHA-256 of all bytes, decompressed."""

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...
    def __getitem__(self, number: int | slice) -> str | list[str]:
        if isinstance(number, slice):
            return [self[each] for each in range(*number.indices(len(self)))]
        if not -len(self) <= number < len(self):
            raise IndexError(f"{self.path} has {len(self)} lines, counted from 0; not {number}")
        return self._line_bytes(number % len(self)).decode("utf-8", "replace")

    def __iter__(self) -> Iterator[str]:
        return (self[number] for number in range(len(self)))

    def sizes(self) -> np.ndarray:
        """Bytes of each line, newline included."""
        return np.diff(self._starts)

    def notes(self) -> Iterator[Fault]:
        """Warnings about the file as a whole: a byte order mark, CR LF."""
        if self._mark:
            yield Fault(
                "byte order mark", "begins with a byte order mark; it is removed",
                self.path, severe=False,
            )  # fmt: skip
        if self._returns:
            yield Fault(
                "carriage return",
                f"{self._returns} of {len(self)} lines end in CR LF; the CR is removed",
                self.path, severe=False,
            )  # fmt: skip

    def fault(self, number: int) -> Fault | None:
        """Invalid bytes of a line, or its over-length."""
        if number not in self._bad:
            return None
        size = int(self._starts[number + 1] - self._starts[number]) - 1
        if size > LINE:
            what = f"has {size} bytes, more than {LINE}: a newline may be missing"
            return Fault("over-long", what, self.path, number + 1)
        raw = self._line_bytes(number)
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            if number == 0 and raw.startswith(UTF16):
                what = "looks like UTF-16; convert it: iconv -f UTF-16 -t UTF-8"
            else:
                near = len(raw[: error.start].decode("utf-8", "backslashreplace"))
                shown = excerpt(raw.decode("utf-8", "backslashreplace"), near)
                what = f"byte {error.start + 1} is not UTF-8, in {shown}"
            return Fault("invalid UTF-8", what, self.path, number + 1)
        place = text.index("\0")
        what = f"character {place + 1} is NUL, in {excerpt(text, place)}"
        return Fault("NUL", what, self.path, number + 1)

    def _line_bytes(self, number: int) -> bytes:
        start = int(self._starts[number])
        # Never past what was scanned: another process may be appending to the file.
        end = min(int(self._starts[number + 1]), self._size)
        raw = os.pread(self._descriptor, min(end - start, LINE), start)
        return raw.removesuffix(b"\n").removesuffix(b"\r") if raw.endswith(b"\n") else raw


class _Scan:
    """One pass over a file: line offsets, invalid lines, digest."""

    def __init__(self, descriptor: int) -> None:
        self.digest = hashlib.sha256()
        self.bad: list[int] = []
        self.returns = 0
        self._begins = [np.zeros(1, np.int64)]
        self.size = self._lines = 0
        waiting: list[bytes] = []  # the beginning of a line that ends in a later chunk
        place = self._dropped = 0
        while chunk := os.pread(descriptor, CHUNK, place):
            place += len(chunk)
            self.digest.update(chunk)
            cut = chunk.rfind(b"\n") + 1
            waiting.append(chunk[:cut] if cut else chunk)
            if cut:
                self._take(b"".join(waiting))
                waiting = [chunk[cut:]]
            elif (held := sum(map(len, waiting))) > LINE:
                self._dropped, waiting = self._dropped + held, []
        if (rest := b"".join(waiting)) or self._dropped:
            self._take(rest, end=b"\n")
        self.mark = os.pread(descriptor, len(BOM), 0) == BOM

    def _take(self, block: bytes, end: bytes = b"") -> None:
        """Complete lines; the last one of a file may lack its newline.

        The beginning of the first may have been dropped: it is too long to be held.
        """
        ends = np.flatnonzero(np.frombuffer(block + end, np.uint8) == ord("\n")) + self._dropped
        self._begins.append(ends + (self.size + 1))
        sizes = np.diff(ends, prepend=-1) - 1
        self.bad += (self._lines + np.flatnonzero(sizes > LINE)).tolist()
        self.size, self._dropped = self.size + self._dropped, 0
        self.returns += block.count(b"\r\n")
        if not _is_text(block):
            pieces = block.split(b"\n")
            self.bad += [self._lines + n for n, raw in enumerate(pieces) if not _is_text(raw)]
        self.size += len(block)
        self._lines += len(ends)

    def starts(self) -> np.ndarray:
        """The offset of each line, and one past the end."""
        starts = np.concatenate(self._begins)
        if self.mark:
            starts[0] = len(BOM)
            if self.size == len(BOM):  # only the mark
                starts = starts[:1]
        return starts


def _is_text(block: bytes) -> bool:
    if b"\0" in block:
        return False
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True
