"""`regard check`: look at the data before training on it."""

from collections import Counter

from regard.cli.config_options import (
    Config,
    Data,
    GivenLinks,
    Settings,
    Task,
    Valid,
    config_options,
)
from regard.cli.output import say
from regard.seq2seq.system.escaping import escaped

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
    whole = config_options(
        task, path=config, data=data, valid=valid, links=links, settings=settings
    )
    from regard.tasks.config import AlignConfig, TranslateConfig  # noqa: PLC0415
    from regard.tasks.pairs.checking import checked  # noqa: PLC0415  # help need not wait

    assert isinstance(whole, TranslateConfig | AlignConfig)
    seen: Counter[str] = Counter()
    severe = False
    for fault, line in checked(whole.data):
        seen[fault.kind] += 1
        severe = severe or fault.severe
        if seen[fault.kind] <= SHOWN:
            say(escaped(f"{'error' if fault.severe else 'warning'}: {line}"))
    for kind, count in seen.items():
        if count > SHOWN:
            say(f"… {kind}: {count} in all")
    say(f"found: {seen.total()}" if seen else "nothing is wrong")
    return 1 if severe else 0
