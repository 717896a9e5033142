"""The faults of a configuration's data, found before training."""

from collections.abc import Iterator

from regard.seq2seq.batch import Fault
from regard.seq2seq.data import overlap
from regard.seq2seq.errors import ConfigError
from regard.tasks.config import TaskConfig
from regard.tasks.task import AnyTask


def check_data(task: AnyTask, config: TaskConfig) -> Iterator[Fault]:
    """The faults of every file, then train/validation overlap and unseen characters."""
    task.check(config)
    data = config.data
    if not data.train:
        raise ConfigError("data.train names no file. Give one: --data FILE.")
    corpora = [task.guide(config, task.open(config, data.train))]
    corpora += [task.open(config, data.valid)] if data.valid else []
    valid_numbers = []
    for corpus in corpora:
        bad: set[int | None] = set()
        for fault in corpus.faults():
            if fault.severe:
                bad.add(fault.item)
            yield fault
        # A fault of a whole file leaves nothing to compare.
        valid_numbers.append([n for n in range(len(corpus)) if not bad & {n, None}])
    if len(corpora) < 2:
        return
    sides = [
        ([corpus[n] for n in numbers], [corpus.where(n) for n in numbers])
        for corpus, numbers in zip(corpora, valid_numbers, strict=True)
    ]
    yield from overlap(*(zip(map(task.group, items), where, strict=True) for items, where in sides))
    yield from task.between(config, sides[0][0], sides[1][0])
