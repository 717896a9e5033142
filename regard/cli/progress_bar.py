"""How far a long answer is, for a person at a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from typing import IO, cast

from regard.seq2seq.system.escaping import EscapingStream, unescaping


@contextmanager
def progress_bar(total: int) -> Iterator[Callable[[int], None] | None]:
    """What to call with how many lines are done; None where nobody looks.

    On a terminal that shows the answers themselves, a bar would only be in their way.
    """
    if not sys.stderr.isatty() or sys.stdout.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415  # slow to import
    from rich.progress import Progress  # noqa: PLC0415

    console = Console(file=cast(IO[str], unescaping(sys.stderr)))
    columns = Progress.get_default_columns()
    # The bar makes room for what is noted meanwhile; answers are none of its business.
    with (
        Progress(*columns, console=console, redirect_stdout=False) as bar,
        redirect_stderr(cast(IO[str], EscapingStream(sys.stderr))),
    ):
        task = bar.add_task("lines", total=total)
        yield lambda done: bar.update(task, completed=done)
