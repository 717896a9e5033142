"""The Transformer recipe on Multi30k, English to German: BLEU and cost.

Trained by `regard train` on one core, evaluated by `regard evaluate` on test_2016_flickr: raw text,
BLEU with sacrebleu's 13a, cased, beam size 5. Nothing is selected by the test set: the best weights
are those of the best validation. CPU minutes are those of the whole command, validation included. A
finished run in `.benchmarks/runs` is only evaluated, and an interrupted one is resumed; minutes add
up.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import captions
from benchmarks.machine import ROOT
from benchmarks.measure import FailedError
from benchmarks.results import Row
from benchmarks.settings import Outcome, Settings, promise

RUNS = ROOT / ".benchmarks" / "runs"
MINUTES = 60.0
LOSS = 0.3
"""What int8 may cost."""


def run(settings: Settings) -> Outcome:
    """Train it, or go on with it; then score it."""
    return reached(settings, "multi30k-transformer", 38.0)


def reached(settings: Settings, recipe: str, needed: float) -> Outcome:
    """What a recipe reaches, and whether that is what was promised."""
    row = one(recipe, captions.folder(settings), settings.quick)
    return Outcome([row], promises(row, recipe, needed))


def one(recipe: str, data: Path, quick: bool) -> Row:
    """Train a recipe, or go on with it; then score it."""
    folder, minutes = trained(recipe, data, quick)
    row: Row = {"case": {"recipe": recipe}, "who": "regard", "minutes": round(minutes, 1)}
    test = [str(data / f"test_2016_flickr.{language}") for language in ("en", "de")]
    for name, more in (("scores", []), ("greedy", ["--beam", "1"]), ("int8", ["--int8"])):
        said, seconds = commanded(["evaluate", str(folder), *test, "--json", *more])
        row[name] = {score["name"]: score for score in json.loads(said)}
        row[name]["seconds"] = round(seconds, 1)
    return row


def trained(recipe: str, data: Path, quick: bool) -> tuple[Path, float]:
    """The folder of a run, finished, and the CPU minutes that it has taken."""
    folder = RUNS / (f"{recipe}-quick" if quick else recipe)
    train = [
        "train", "translate", "--recipe", recipe,
        *_files("--data", data, "train"), *_files("--valid", data, "val"), "--out", str(folder),
    ]  # fmt: skip
    if quick:
        train += ["--set", "training.steps=3"]
    return folder, spent(folder, commanded(train)[1])


def commanded(arguments: Sequence[str]) -> tuple[str, float]:
    """What the command says, and the CPU seconds that it took; errors are shown as they come."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "regard", *arguments], env=environment, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    said = process.stdout.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise FailedError(f"regard {arguments[0]} left with {process.returncode}")
    return said, usage.ru_utime + usage.ru_stime


def spent(folder: Path, seconds: float) -> float:
    """CPU minutes that a run has taken in all, these among them."""
    path = folder / "cpu.json"
    before = json.loads(path.read_text()) if path.exists() else []
    after = [*before, {"seconds": seconds, "at": time.strftime("%Y-%m-%d %H:%M")}]
    path.write_text(json.dumps(after))
    return sum(each["seconds"] for each in after) / 60


def promises(row: Row, recipe: str, needed: float) -> list[Row]:
    """What a recipe must reach, within how much, and what int8 may cost."""
    bleu = row["scores"]["BLEU"]["value"]
    lost = bleu - row["int8"]["BLEU"]["value"]
    return [
        promise(f"BLEU, {recipe}", [row], lambda _: bleu, at_least=needed),
        promise(f"BLEU that int8 costs, {recipe}", [row], lambda _: lost, at_most=LOSS),
        promise(f"CPU minutes, {recipe}", [row], lambda row: row["minutes"], at_most=MINUTES),
    ]


def _files(option: str, data: Path, name: str) -> list[str]:
    return [part for end in ("en", "de") for part in (option, str(data / f"{name}.{end}"))]
