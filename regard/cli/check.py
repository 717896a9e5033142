"""`regard check`: look at the data before training on it."""

from collections import Counter

import typer

from regard.cli.configured import Config, Data, GivenLinks, Settings, Task, Valid, configured

SHOWN = 5
"""How many of a kind are shown."""


def check(
    task: Task,
    data: Data = None,
    valid: Valid = None,
    links: GivenLinks = None,
    config: Config = None,
    settings: Settings = None,
) -> int:
    """Say what is wrong with files of pairs; leave with 1 if training would stop.

    regard check translate --data pairs.tsv
    """
    whole = configured(task, path=config, data=data, valid=valid, links=links, settings=settings)
    from regard.tasks.config import Align, Translate  # noqa: PLC0415
    from regard.tasks.pairs.checking import checked  # noqa: PLC0415  # help need not wait

    assert isinstance(whole, Translate | Align)
    seen: Counter[str] = Counter()
    severe = False
    for fault, line in checked(whole.data):
        seen[fault.kind] += 1
        severe = severe or fault.severe
        if seen[fault.kind] <= SHOWN:
            typer.echo(f"{'error' if fault.severe else 'warning'}: {line}")
    for kind, count in seen.items():
        if count > SHOWN:
            typer.echo(f"… {kind}: {count} in all")
    typer.echo(f"found: {seen.total()}" if seen else "nothing is wrong")
    return 1 if severe else 0
