"""What a command says: answers on the standard output, and what people should know beside them."""

import sys

from regard.seq2seq.system.escaping import escaped


def say(text: str, *, end: str = "\n") -> None:
    """An answer: as it is in a file or a pipe; safe to show on a terminal."""
    sys.stdout.write((escaped(text) if sys.stdout.isatty() else text) + end)
    sys.stdout.flush()


def note(text: str) -> None:
    """What people should know: on the standard error, all of which `framed` escapes."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
