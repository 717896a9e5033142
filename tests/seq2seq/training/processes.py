"""Real processes that train, and are killed. A script: torch is imported once, children forked.

python -m tests.seq2seq.training.processes FOLDER      writes what happened to stdout as JSON
"""

import json
import os
import random
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch._dynamo  # noqa: F401  # torch imports it at the first update: once is enough

from regard.seq2seq.errors import RunError
from regard.seq2seq.training import Checkpoints, NullReporter, Update
from regard.seq2seq.training.lock import Lock
from tests.seq2seq.training.toy import OPTIONS, left, train

STAGES = (
    "begun", "model.safetensors", "optimiser.safetensors", "average.safetensors", "record.json",
    "manifest.json", "synced", "renamed", "settled", "pruned",
)  # fmt: skip


class Stepping(NullReporter):
    """Does something after a step."""

    def __init__(self, step: int, act: Callable[[], object]) -> None:
        self.step, self.act = step, act

    def progressed(self, update: Update) -> None:
        if update.step == self.step:
            self.act()


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def forked(act: Callable[[], int | None]) -> int:
    """A child that does it and leaves with what it returns."""
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        code = act() or 0
    finally:
        os._exit(code)


def ended(child: int) -> int:
    """How the child ended: its code, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def trained(directory: Path, **more: Any) -> Callable[[], int]:
    return lambda: train(directory, **more).code


def lost(directory: Path) -> int:
    """How many updates are in the log but in no checkpoint."""
    log = directory / "log.jsonl"
    steps = re.findall(rb'"step": (\d+), "loss"', log.read_bytes()) if log.exists() else []
    return int(steps[-1]) - Checkpoints(directory).steps()[-1] if steps else 0


def killed_at_random(folder: Path, kills: int, longest: float) -> dict[str, Any]:
    """Killed at random times and taken up again; a run that came through gives way to another."""
    draw = random.Random(11)
    losses: list[int] = []
    runs = 0
    while len(losses) < kills:
        directory = folder / f"random-{runs}"
        child = forked(trained(directory))
        time.sleep(draw.uniform(0.0, longest))
        os.kill(child, signal.SIGKILL)
        if ended(child) == 0:
            runs += 1
        else:
            losses.append(lost(directory))
    last = [ended(forked(trained(folder / f"random-{run}"))) for run in range(runs + 1)]
    return {"lost": losses, "last": last}


def killed_in_a_save(directory: Path, stage: str, save: int) -> dict[str, Any]:
    """Killed at a stage of its so-many-th save."""
    times = 0

    def after(done: str) -> None:
        nonlocal times
        times += done == stage
        if times == save:
            die()

    codes = [ended(forked(trained(directory, after=after)))]
    losses = [lost(directory)]
    return {"codes": codes, "lost": losses, "last": ended(forked(trained(directory)))}


def told(directory: Path, number: int) -> int:
    """Sent a signal by another process while it trains."""
    ready, write = os.pipe()
    sent, send = os.pipe()

    def wait() -> None:
        os.write(write, b"!")
        os.read(sent, 1)

    child = forked(trained(directory, reporter=Stepping(6, wait)))
    os.read(ready, 1)
    os.kill(child, number)
    os.write(send, b"!")
    return ended(child)


def refused(directory: Path) -> dict[str, Any]:
    """A second process while the first trains; a third when that is killed."""
    ready, write = os.pipe()
    answer, say = os.pipe()

    def hold() -> None:
        os.write(write, b"!")
        time.sleep(60)

    first = forked(trained(directory, reporter=Stepping(6, hold)))
    os.read(ready, 1)

    def second() -> int:
        try:
            train(directory)
        except RunError as error:
            os.write(say, str(error).encode())
            return error.code
        return 0

    code = ended(forked(second))
    said = os.read(answer, 1000).decode()
    os.kill(first, signal.SIGKILL)
    ended(first)
    with Lock(directory):
        free = True
    last = ended(forked(trained(directory)))
    return {"code": code, "said": said, "first": first, "free": free, "last": last}


def main(folder: Path) -> dict[str, Any]:
    begun = time.perf_counter()
    ended(forked(trained(folder / "whole")))
    longest = time.perf_counter() - begun
    whole = left(folder / "whole")
    found: dict[str, Any] = {"save_every": OPTIONS.save_every}
    found["random"] = killed_at_random(folder, 5, longest)
    for number, stage in enumerate(STAGES):
        found[stage] = killed_in_a_save(folder / stage, stage, 1 + number % 4)
    found["terminated"] = {"code": told(folder / "terminated", signal.SIGTERM)}
    found["interrupted"] = {"code": told(folder / "interrupted", signal.SIGINT)}
    for name in ("terminated", "interrupted"):
        found[name]["step"] = Checkpoints(folder / name).steps()[-1]
        found[name]["last"] = ended(forked(trained(folder / name)))
    found["refused"] = refused(folder / "refused")
    for path in folder.iterdir():
        found.setdefault(path.name, {})["equal"] = left(path) == whole
        found[path.name]["unfinished"] = len(list(path.glob("checkpoints/.*")))
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(Path(sys.argv[1]))))
