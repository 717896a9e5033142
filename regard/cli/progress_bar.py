"""A progress bar for long commands, on a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from typing import IO, cast

from regard.seq2seq.system.escaping import EscapingStream, unescaping


@contextmanager
def progress_bar(total: int) -> Iterator[Callable[[int], None] | None]:
    """A callback that takes the number of lines done; None where no bar is shown.

    There is none on a terminal that shows the answers themselves.
    """
    if not sys.stderr.isatty() or sys.stdout.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415  # slow to import
    from rich.progress import Progress  # noqa: PLC0415

    console = Console(file=cast(IO[str], unescaping(sys.stderr)))
    columns = Progress.get_default_columns()
    # Notes are printed above the bar; answers bypass it.
    with (
        Progress(*columns, console=console, redirect_stdout=False) as bar,
        redirect_stderr(cast(IO[str], EscapingStream(sys.stderr))),
    ):
        task = bar.add_task("lines", total=total)
        yield lambda done: bar.update(task, completed=done)
