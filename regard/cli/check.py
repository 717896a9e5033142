"""`regard check`: validate the data before training on it."""

from collections import Counter

from regard.cli.config_options import (
    Config,
    Data,
    GivenLinks,
    Recipe,
    Settings,
    TaskArgument,
    Valid,
    config_options,
)
from regard.cli.output import write_answer
from regard.seq2seq.system.escaping import escaped

SHOWN = 5
"""How many faults of a kind are shown."""


def check(
    task: TaskArgument,
    data: Data = None,
    valid: Valid = None,
    links: GivenLinks = None,
    recipe: Recipe = None,
    config: Config = None,
    settings: Settings = None,
) -> int:
    """List the faults of the data; exit with 1 if training would stop.

    regard check translate --data pairs.tsv
    """
    given = config_options(
        task, recipe=recipe, path=config, data=data, valid=valid, links=links, settings=settings
    )
    from regard.seq2seq.data import format_fault  # noqa: PLC0415  # torch: help need not wait
    from regard.tasks.check import check_data  # noqa: PLC0415
    from regard.tasks.registry import task_of  # noqa: PLC0415

    seen: Counter[str] = Counter()
    severe = False
    for fault in check_data(task_of(task), given):
        seen[fault.kind] += 1
        severe = severe or fault.severe
        if seen[fault.kind] <= SHOWN:
            write_answer(
                escaped(f"{'error' if fault.severe else 'warning'}: {format_fault(fault)}")
            )
    for kind, count in seen.items():
        if count > SHOWN:
            write_answer(f"… {kind}: {count} in all")
    write_answer(f"faults found: {seen.total()}" if seen else "no faults found")
    return 1 if severe else 0
