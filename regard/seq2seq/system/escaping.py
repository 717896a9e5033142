r"""Escaping of control characters, for everything that is printed.

A file name, a key or a token may hold any character: ESC begins a terminal's control sequence, and
a bidirectional override reverses the text beside it. Wherever a person reads, such characters are
written as Python escapes, `\x1b` or `\u202e`. Data is not escaped.
"""

import io
import re
from typing import IO, Protocol, cast, runtime_checkable

ISOLATE, ENDED = "\u2068", "\u2069"
"""Around a text of any direction, so that the text beside it keeps its order."""

_HIDDEN = "\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
CONTROL = re.compile(f"[{_HIDDEN}]")
"""C0, DEL, C1, bidirectional overrides, embeddings and isolates, and lone surrogates."""

_ISOLATED = re.compile(f"{ISOLATE}[^{_HIDDEN}]*{ENDED}|[{_HIDDEN}]")
_LAYOUT = ("\n", "\t")


def escaped(text: str) -> str:
    r"""The text, safe to print; line breaks, tabs and closed isolates stay.

    >>> escaped("a\x1b[31m \u202eb\x9b\n") == r"a\x1b[31m \u202eb\x9b" + "\n"
    True
    """
    return _ISOLATED.sub(_escape_unsafe, text)


def spelled_out(text: str) -> str:
    r"""The text on one line, with every control character escaped.

    >>> print(spelled_out("a\tb\u2068c\u2069"))
    a\tb\u2068c\u2069
    """
    return CONTROL.sub(_escape, text)


def _escape_unsafe(found: re.Match[str]) -> str:
    part = found[0]
    return part if part in _LAYOUT or len(part) > 1 else _escape(found)


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


@runtime_checkable
class Writable(Protocol):
    """A text stream."""

    def write(self, text: str, /) -> int: ...

    def flush(self) -> None: ...

    def isatty(self) -> bool: ...


class EscapingStream(io.TextIOBase):
    """A stream that escapes all that is written to it."""

    def __init__(self, stream: Writable) -> None:
        self.stream = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return getattr(self.stream, "encoding", None) or "utf-8"

    @property
    def errors(self) -> str:  # type: ignore[override]
        return getattr(self.stream, "errors", None) or "strict"

    def write(self, text: str, /) -> int:
        self.stream.write(escaped(text))
        return len(text)

    def flush(self) -> None:
        self.stream.flush()

    def isatty(self) -> bool:
        return self.stream.isatty()

    def fileno(self) -> int:
        return cast(IO[str], self.stream).fileno()

    def writable(self) -> bool:
        return True


def unescaping(stream: Writable) -> Writable:
    """The wrapped stream, for code that writes control sequences and escapes its own text."""
    return stream.stream if isinstance(stream, EscapingStream) else stream
