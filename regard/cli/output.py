"""The output of a command: answers on standard output, notes on standard error."""

import sys

from regard.seq2seq.system.escaping import escaped


def write_answer(text: str, *, end: str = "\n") -> None:
    """Write to standard output: unchanged to a file or a pipe, escaped on a terminal."""
    sys.stdout.write((escaped(text) if sys.stdout.isatty() else text) + end)
    sys.stdout.flush()


def note(text: str) -> None:
    """Write to standard error, all of which `run_command` escapes."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
