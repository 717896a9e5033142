"""Runs every verb: errors become one line and an exit code."""

import io
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr
from typing import IO, Protocol, cast, runtime_checkable

from regard.attention.core.errors import RegardError
from regard.seq2seq.system.escaping import EscapingStream
from regard.tasks.config.wording import one_line

REFUSED = 2
INTERRUPTED = 130
BROKEN_PIPE = 1


@runtime_checkable
class UsageFault(Protocol):
    """A usage error, as typer raises it."""

    exit_code: int

    def format_message(self) -> str: ...


def run_command(command: Callable[[], object], *, debug: bool = False) -> int:
    """Run a command; returns the exit code.

    A bug is raised on, with its traceback. Standard error is escaped: it is shown on a terminal
    and quotes untrusted text.

    Args:
        command: What to run; an integer that it returns is the exit code.
        debug: Show the traceback of every error?
    """
    with redirect_stderr(cast(IO[str], EscapingStream(sys.stderr))):
        return _exit_code(command, debug)


def _exit_code(command: Callable[[], object], debug: bool) -> int:
    try:
        code = command()
        sys.stdout.flush()  # a closed pipe raises here, not at the interpreter's exit
    except BrokenPipeError:
        _flush_stdout()
        return BROKEN_PIPE
    except (KeyboardInterrupt, EOFError):
        return INTERRUPTED
    except Exception as error:
        line = format_error(error)
        if line is None:
            raise
        _flush_stdout()
        if debug:
            traceback.print_exc()
        sys.stderr.write(f"regard: {line}\n")
        return getattr(error, "code", getattr(error, "exit_code", REFUSED))
    return code if isinstance(code, int) else 0


def format_error(error: Exception) -> str | None:
    """The message of an error that the user can cure, on one line; None for others."""
    line: str | None = None
    if isinstance(error, RegardError):
        line = str(error)
    elif isinstance(error, UsageFault):
        line = f"{_with_period(error.format_message())} {_help_hint(error)}"
    elif isinstance(error, OSError) and error.errno is not None:
        line = f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    return None if line is None else one_line(line)


def use_utf8() -> None:
    """Write UTF-8 whatever the locale, so that no character fails to encode."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _with_period(sentence: str) -> str:
    return sentence if sentence.endswith((".", "?")) else f"{sentence}."


def _help_hint(error: object) -> str:
    command = getattr(getattr(error, "ctx", None), "command_path", None)
    return f"See {command} --help." if command else ""


def _flush_stdout() -> None:
    """Flush, or discard what cannot be written: the interpreter would fail on it at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
