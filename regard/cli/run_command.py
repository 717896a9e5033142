"""What holds every verb: errors become one line and an exit code."""

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
NOBODY_READS = 1


@runtime_checkable
class Misused(Protocol):
    """A command line that cannot be understood, as typer raises it."""

    exit_code: int

    def format_message(self) -> str: ...


def run_command(command: Callable[[], object], *, debug: bool = False) -> int:
    """Run it; what code to leave with.

    What is nobody's mistake but ours is raised on, with all that helps to find it. Whatever is
    written to the standard error is escaped: people read it, and it names what others made.

    Args:
        command: What to run; a number that it returns is its code.
        debug: Show where an error comes from, too?
    """
    with redirect_stderr(cast(IO[str], EscapingStream(sys.stderr))):
        return _framed(command, debug)


def _framed(command: Callable[[], object], debug: bool) -> int:
    try:
        code = command()
        sys.stdout.flush()  # a closed pipe is met here, not after the last word
    except BrokenPipeError:
        _let_go()
        return NOBODY_READS
    except (KeyboardInterrupt, EOFError):
        return INTERRUPTED
    except Exception as error:
        line = format_error(error)
        if line is None:
            raise
        _let_go()
        if debug:
            traceback.print_exc()
        sys.stderr.write(f"regard: {line}\n")
        return getattr(error, "code", getattr(error, "exit_code", REFUSED))
    return code if isinstance(code, int) else 0


def format_error(error: Exception) -> str | None:
    """What to tell of an error that is the user's to mend, on one line; None for others."""
    line: str | None = None
    if isinstance(error, RegardError):
        line = str(error)
    elif isinstance(error, Misused):
        line = f"{_ended(error.format_message())} {_where_to_look(error)}"
    elif isinstance(error, OSError) and error.errno is not None:
        line = f"{error.filename}: {error.strerror}." if error.filename else f"{error.strerror}."
    return None if line is None else one_line(line)


def speak_utf8() -> None:
    """Files of ours are UTF-8 wherever they are written; a character can then never fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "?")) else f"{sentence}."


def _where_to_look(error: object) -> str:
    command = getattr(getattr(error, "ctx", None), "command_path", None)
    return f"See {command} --help." if command else ""


def _let_go() -> None:
    """Write what can be written. The interpreter would try the rest once more, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
