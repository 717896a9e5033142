"""Damaged run folders: every verb answers as before, says what it used instead, or refuses.

python -m tests.fuzz.run_folders [COUNT [FIRST]]        counts, and what went wrong, on the stdout

Runs are trained once; then each case is a copy of one with damage drawn from the case's number. It
is asked in a forked child, which has torch and dies of what hangs or takes too much memory.
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

import torch
import torch._dynamo  # torch imports it at the first update: once is enough

from tests.cli.commands import CommandResult, regard
from tests.cli.test_verbs import settings
from tests.fuzz.damage import DAMAGES, Scene
from tests.tasks.translate.small import write_pairs

PATIENCE = 10.0
"""Seconds; what takes longer hangs."""

MEMORY = 4 << 30
"""Bytes a case may have."""

FINE = ("answered", "answered with a note", "answered of a forgery", "refused")
NOTES = (
    "is broken (", "cannot be read (", "when saved", "are missing",
    "was changed since the checkpoint",
    "continues after step", "is truncated or missing", "no longer bit-identical",
)  # fmt: skip
"""Notes that a run was damaged or changed."""

VERBS = {
    "translate": ("predict", "predict --last", "evaluate", "score", "align", "show", "train"),
    "align": ("align", "show", "train"),
}


class HangError(BaseException):
    """It takes too long; nothing that catches an `Exception` catches it."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a case."""

    number: int
    verb: str
    done: str
    outcome: str
    told: str = ""


def prepare(folder: Path) -> None:
    """Train a translator and an aligner, each twice: the other has another seed."""
    write_pairs(folder / "pairs.tsv", 40)
    (folder / "input.txt").write_text("one two\n\nthree four zero\n", encoding="utf-8")
    for task in VERBS:
        for seed in (1, 2):
            said = _train(folder, task, f"{task}-{seed}", 8, seed)
            if said.returncode:
                raise AssertionError(said.stderr)


def _train(folder: Path, task: str, run: str, steps: int, seed: int = 1) -> CommandResult:
    small = settings() if task == "translate" else settings(
        text={"kind": "bare"}, model={"size": 11, "spelling": 16}
    )  # fmt: skip
    # No rate that follows the number of steps: a run taken up anywhere ends with the same weights.
    every = {"save_every": 3, "validate_every": 4, "decay": "none"}
    training = {"steps": steps, "seed": seed, **every}
    more = [
        part for key, value in training.items() for part in ("--set", f"training.{key}={value}")
    ]
    return regard("train", task, "--data", "pairs.tsv", "--out", run, *small, *more, cwd=folder)


def ask(folder: Path, task: str, verb: str) -> CommandResult:
    """The run `run` in this folder, asked by a verb; training goes on, and the last is asked."""
    given = {
        "predict": ["predict", "run", "input.txt"],
        "predict --last": ["predict", "run", "input.txt", "--latest"],
        "evaluate": ["evaluate", "run", "pairs.tsv"],
        "score": ["score", "run", "pairs.tsv"],
        "align": ["align", "run", "pairs.tsv"],
        "show": ["show", "run", "one two", "1 2"],
    }
    if verb != "train":
        return regard(*given[verb], cwd=folder)
    trained = _train(folder, task, "run", 10)
    if trained.returncode:
        return trained
    last = ["predict --last"] if task == "translate" else ["align"]
    said = regard(*given[last[0]], cwd=folder)
    return subprocess.CompletedProcess(
        [], said.returncode, said.stdout, trained.stderr + said.stderr
    )


def references(folder: Path) -> dict[str, str]:
    """What the undamaged runs answer, by task and verb."""
    found = {}
    for task, verbs in VERBS.items():
        for verb in verbs:
            with _copy(folder, task) as scene:
                said = ask(scene.run.parent, task, verb)
            if said.returncode:
                raise AssertionError(said.stderr)
            found[f"{task} {verb}"] = said.stdout
    return found


class _copy:  # noqa: N801  # used as a function
    """Within it, a copy of a task's run as `run`, in a folder of its own."""

    def __init__(self, folder: Path, task: str, draw: Random | None = None) -> None:
        self.folder, self.task, self.draw = folder, task, draw or Random(0)

    def __enter__(self) -> Scene:
        self.here = Path(tempfile.mkdtemp(dir=self.folder))
        for name in ("pairs.tsv", "input.txt"):
            shutil.copyfile(self.folder / name, self.here / name)
        run, outside = self.here / "run", self.here / "outside"
        shutil.copytree(self.folder / f"{self.task}-1", run)
        outside.mkdir()
        shutil.copytree(max((run / "checkpoints").iterdir()), outside / "checkpoint")
        (outside / "mine.txt").write_text("mine\n" * 99)
        (outside / "mine.json").write_text('{"step": 1}\n')
        os.mkfifo(outside / "pipe")
        return Scene(run, self.folder / f"{self.task}-2", outside, self.draw)

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.here, ignore_errors=True)


def one(folder: Path, number: int, expected: dict[str, str]) -> Result:
    """A case: damage a copy, ask it, and say what became of it."""
    draw = Random(number)
    task = draw.choice(("translate", "translate", "align"))
    verb = draw.choice(VERBS[task])
    with _copy(folder, task, draw) as scene:
        done = []
        for _ in range(draw.choice((1, 1, 1, 2, 3))):
            try:
                done.append(draw.choice(DAMAGES)(scene))
            except Exception:
                continue  # what was to be damaged is damaged already
        mine = _content(scene.outside)
        outcome, told = _asked(scene, task, verb, expected[f"{task} {verb}"], done)
        if _content(scene.outside) != mine:
            outcome = "WROTE OUTSIDE"
    return Result(number, f"{task} {verb}", "; ".join(done), outcome, told)


def _asked(
    scene: Scene, task: str, verb: str, expected: str, done: Iterable[str]
) -> tuple[str, str]:
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        said = ask(scene.run.parent, task, verb)
    except HangError:
        return "HANG", traceback.format_exc()
    except BaseException:  # all that a person would see as a traceback
        return "TRACEBACK", traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return judged(said, expected, any("forged" in each for each in done)), said.stderr


def judged(said: CommandResult, expected: str, forged: bool) -> str:
    """Which outcome it is."""
    lines = said.stderr.splitlines()
    if "Traceback" in said.stderr:
        return "TRACEBACK"
    if said.returncode == 2:
        told = [line for line in lines if line.startswith("regard: ")]
        whole = len(told) == 1 and lines[-1] == told[0] and len(told[0]) < 2000
        return "refused" if whole else "NOT ONE LINE"
    if said.returncode or said.stdout == expected:
        return f"CODE {said.returncode}" if said.returncode else "answered"
    if len(said.stdout.split("\n")) != len(expected.split("\n")) and not forged:
        return "OTHER LINES"
    if any(note in said.stderr for note in NOTES):
        return "answered with a note"
    return "answered of a forgery" if forged else "WRONG"


def _content(folder: Path) -> dict[str, bytes]:
    found = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in found
        if "moved" not in path.parts  # the run's own, which may be gone on with nowhere
    }


def worked(folder: Path, numbers: list[int], expected: dict[str, str]) -> Iterator[Result]:
    """Cases in a child; another child after each that died."""
    while numbers:
        read, write = os.pipe()
        child = os.fork()
        if not child:
            os.close(read)
            _child(folder, numbers, expected, write)
        os.close(write)
        with open(read, encoding="utf-8") as lines:
            for line in lines:
                yield Result(**json.loads(line))
                numbers = numbers[1:]
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if ended and numbers:
            hung = ended == -signal.SIGKILL
            yield Result(numbers[0], "?", "?", "HANG" if hung else "DIED", str(ended))
            numbers = numbers[1:]


def _child(folder: Path, numbers: list[int], expected: dict[str, str], write: int) -> None:
    code = 1
    try:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        signal.signal(signal.SIGALRM, _late)
        with open(write, "w", encoding="utf-8") as results:
            for number in numbers:
                watch = os.fork()
                if not watch:  # where no signal is heard, this one is
                    time.sleep(3 * PATIENCE)
                    os.kill(os.getppid(), signal.SIGKILL)
                    os._exit(0)
                found = one(folder, number, expected)
                os.kill(watch, signal.SIGKILL)
                os.waitpid(watch, 0)
                results.write(json.dumps(asdict(found)) + "\n")
                results.flush()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _late(*_: object) -> None:
    raise HangError


def fuzz(folder: Path, count: int, first: int = 0) -> list[Result]:
    """So many cases, from this number on."""
    prepare(folder)
    expected = references(folder)
    return list(worked(folder, list(range(first, first + count)), expected))


def main(count: int = 1000, first: int = 0) -> int:
    """Count outcomes; 1 if some are not fine."""
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        found = fuzz(Path(folder), count, first)
    bad = [result for result in found if result.outcome not in FINE]
    for result in bad:
        head = f"{result.number}: {result.outcome}: {result.verb}: {result.done}"
        sys.stdout.write(f"{head}\n{result.told}\n")
    for outcome, times in Counter(result.outcome for result in found).most_common():
        sys.stdout.write(f"{times:6} {outcome}\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
