"""How far a long answer is, for a person at a terminal."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def counted(total: int) -> Iterator[Callable[[int], None] | None]:
    """What to call with how many lines are done; None where nobody looks.

    On a terminal that shows the answers themselves, a bar would only be in their way.
    """
    if not sys.stderr.isatty() or sys.stdout.isatty():
        yield None
        return
    from rich.console import Console  # noqa: PLC0415  # slow to import
    from rich.progress import Progress  # noqa: PLC0415

    with Progress(*Progress.get_default_columns(), console=Console(stderr=True)) as bar:
        task = bar.add_task("lines", total=total)
        yield lambda done: bar.update(task, completed=done)
