"""A hundred times `kill -9`: every run resumes, bit-identical.

A small model is trained on dates; its process is killed at random moments, and at each stage of a
save (between the files of a checkpoint, before and after its manifest, before and after the folder
is renamed, while old ones are deleted). After each kill the same command resumes. Lost work is what
is in the log but in no checkpoint: at most the updates between two saves. In the end every run must
be bit-identical to one that was never stopped: weights, EMA, optimiser and log.
"""

import os
import random
import re
import signal
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.results import Row
from benchmarks.settings import Outcome, Settings, promise
from regard.seq2seq.training import Checkpoints
from regard.tasks import dates
from regard.tasks import run as runs
from regard.tasks.config import ConfigSource, load
from regard.tasks.config.translate import TranslateConfig

KILLS, FEWER = 100, 6
EVERY = 10
"""Updates between two saves."""

STAGES = (
    "begun", "model.safetensors", "optimiser.safetensors", "average.safetensors", "record.json",
    "manifest.json", "synced", "renamed", "settled", "pruned",
)  # fmt: skip
SETTINGS = {
    "text": {"kind": "characters"},
    "model": {"kind": "bahdanau", "embedding": 24, "encoder_size": 24, "state_size": 40},
    "training": {
        "steps": 60, "save_every": EVERY, "validate_every": 25, "keep": 2, "threads": 1,
        "batch": {"kind": "sentences", "size": 16}, "ema": 0.9, "warmup": 5,
    },
}  # fmt: skip

After = Callable[[str], None]


def run(settings: Settings) -> Outcome:
    """Half of them at random moments, half in a save."""
    kills = FEWER if settings.quick else KILLS
    with tempfile.TemporaryDirectory(prefix="regard-kills-") as folder:
        here = Path(folder)
        config = _config(here)
        began = time.perf_counter()
        assert _ended(_forked(config, here / "whole")) == 0
        lasts = time.perf_counter() - began
        rows = [
            _killed(here, config, "at random", partial(_at_random, lasts), kills // 2),
            _killed(here, config, "in a save", _in_a_save, kills - kills // 2),
        ]
    what = f"of {kills} times kill -9"
    same = [{"part": row["same"] / row["runs"]} for row in rows]
    return Outcome(rows, [
        promise(f"{what}, most updates lost", rows, lambda row: row["lost"], at_most=EVERY),
        promise(f"{what}, share of runs bit-identical", same, lambda r: r["part"], at_least=1.0),
    ])  # fmt: skip


def _killed(
    here: Path, config: TranslateConfig, where: str, kill: Callable[..., int], count: int
) -> Row:
    """Kill so many times; a run that came through gives way to another."""
    draw, lost, runs = random.Random(11), [], 0
    while len(lost) < count:
        folder = here / f"{where} {runs}"
        if kill(config, folder, draw, len(lost)) == 0:
            runs += 1
        else:
            lost.append(_lost(folder))
    folders = [here / f"{where} {number}" for number in range(runs + 1)]
    ended = [_ended(_forked(config, folder)) for folder in folders]
    whole = _contents(here / "whole")
    same = sum(code == 0 and _contents(f) == whole for code, f in zip(ended, folders, strict=True))
    return {
        "case": {"killed": where}, "who": "regard", "kills": count, "lost": max(lost),
        "runs": len(folders), "same": same,
    }  # fmt: skip


def _at_random(
    lasts: float, config: TranslateConfig, folder: Path, draw: random.Random, _: int
) -> int:
    child = _forked(config, folder)
    time.sleep(draw.uniform(0.0, lasts))
    os.kill(child, signal.SIGKILL)
    return _ended(child)


def _in_a_save(config: TranslateConfig, folder: Path, draw: random.Random, number: int) -> int:
    stage, save, seen = STAGES[number % len(STAGES)], draw.randint(1, 3), 0

    def after(done: str) -> None:
        nonlocal seen
        seen += done == stage
        if seen == save:
            os.kill(os.getpid(), signal.SIGKILL)

    return _ended(_forked(config, folder, after))


def _forked(config: TranslateConfig, folder: Path, after: After | None = None) -> int:
    """A child that trains in the folder."""
    child = os.fork()
    if child:
        return child
    code = 99
    try:
        if after is not None:
            runs.run = partial(runs.run, after=after)
        code = runs.train(folder, config).code
    finally:
        os._exit(code)


def _ended(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _lost(folder: Path) -> int:
    """How many updates are in the log but in no checkpoint."""
    log = folder / "log.jsonl"
    steps = re.findall(rb'"step": (\d+), "loss"', log.read_bytes()) if log.exists() else []
    saved = Checkpoints(folder).steps() if steps else []
    return int(steps[-1]) - saved[-1] if saved else 0


def _contents(folder: Path) -> dict[str, bytes]:
    """The last checkpoint and the log."""
    last = sorted((folder / "checkpoints").iterdir())[-1]
    return {p.name: p.read_bytes() for p in (*sorted(last.iterdir()), folder / "log.jsonl")}


def _config(here: Path) -> TranslateConfig:
    paths = dates.write(here / "data", 2000, 100, 100, 1)
    files = {"train": [str(paths["train"])], "valid": [str(paths["valid"])]}
    said = [ConfigSource("the benchmark", SETTINGS), ConfigSource("the benchmark", {"data": files})]
    return load(TranslateConfig, overrides=said)
