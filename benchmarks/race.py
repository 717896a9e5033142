"""Contestants side by side: the same case for all, in turn, each in its process.

A contestant names a function of `benchmarks.contestants`, which makes a case ready and returns what
is to be called. Those of one environment and one kind of allocator share a process.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from benchmarks import limits, peers, tables
from benchmarks.machine import free_memory
from benchmarks.measure import FailedError, Measured, Runner, Sample, interleave, rounded, spread
from benchmarks.results import Row
from benchmarks.settings import Settings

Case = dict[str, Any]
Key = tuple[str, int]
"""Who, and with how many threads."""

OURS = "regard"
SETTLING, FEW = 20, 256
"""Calls until a warm heap has settled, at most, and page faults that are few."""


@dataclass(frozen=True)
class Contestant:
    """Who takes part, and where."""

    who: str
    target: str
    """`"plain:additive"` is the function `additive` of `benchmarks.contestants.plain`."""

    peer: str = peers.OURS
    warm: bool = False
    """Does its process keep freed heap, so that page faults do not count?"""

    settles: bool = False
    """Is it called until its heap has settled, before anything counts? If warm, always."""

    holds: int = 0
    """Bytes that it will hold at once, where that is a lot."""

    process: str = ""
    """Those of one environment share a process, unless this name differs."""


@dataclass(frozen=True)
class Work:
    """The least that a case takes: so many elements or bytes of one limit."""

    limit: str
    amount: float


class Worker:
    """A process with contestants in it."""

    def __init__(self, peer: str, warm: bool, threads: int) -> None:
        command = [peers.python_of(peer), "-m", "benchmarks.worker", *["--warm"] * warm]
        variables = {**os.environ, **peers.variables_of(peer), "OMP_NUM_THREADS": str(threads)}
        self.process = subprocess.Popen(
            command, cwd=peers.ROOT, env=variables, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def order(self, order: str, **details: Any) -> Any:
        """Have something done, and wait for the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps({"order": order, **details}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise FailedError(f"its process ended with code {self.process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise FailedError(peers.without_places(answer["error"].splitlines()[0]))
        return answer["answer"]

    def run(self, name: str, threads: int, calls: int) -> Sample:
        """One repetition."""
        return Sample(**self.order("run", name=name, calls=calls, threads=threads))

    def end(self) -> None:
        """No more orders."""
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with suppress(BrokenPipeError):
                pipe.close()
        self.process.wait()


class Workers:
    """Processes that are started when needed and ended together."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.started: dict[tuple[str, bool, str], Worker] = {}
        self.versions: dict[str, dict[str, str]] = {}

    def of(self, contestant: Contestant) -> Worker:
        """The process that a contestant lives in."""
        place = contestant.peer, contestant.warm, contestant.process
        if contestant.peer != peers.OURS and not self.settings.peers:
            raise FailedError("left out: this run is without peers")
        if place in self.started and self.started[place].process.poll() is not None:
            self.started.pop(place).end()
        if place not in self.started:
            worker = Worker(contestant.peer, contestant.warm, max(self.settings.threads))
            packages = peers.packages_of(contestant.peer)
            self.versions[contestant.peer] = worker.order("versions", packages=packages)
            self.started[place] = worker
        return self.started[place]

    def end(self) -> None:
        """End them all, and what they hold with them."""
        while self.started:
            self.started.popitem()[1].end()


@contextmanager
def working(settings: Settings) -> Iterator[Workers]:
    """Workers for as long as they are needed."""
    workers = Workers(settings)
    try:
        yield workers
    finally:
        workers.end()


def race(
    workers: Workers,
    case: Case,
    contestants: Sequence[Contestant],
    works: Sequence[Work] = (),
    longest: float | None = None,
) -> list[Row]:
    """One row for each contestant and number of threads, ours first.

    `longest` is the plan's, unless given: the seconds after which three rounds are enough.
    """
    settings = workers.settings
    plan = settings.plan if longest is None else replace(settings.plan, longest=longest)
    built, failures = _built(workers, case, contestants)
    runners: dict[Any, Runner] = {}
    for threads in settings.threads:
        for who, worker in built.items():
            runners[who, threads] = partial(worker.run, who, threads)
    amounts: dict[Key, float] = {}
    with suppress(FailedError):  # without a compiler there are no limits, and no shares of them
        for threads in settings.threads if built else ():
            for work in works:
                key = f"limit {work.limit}", threads
                runners[key], amounts[key] = limits.runner(work.limit, threads, settings)
    found = interleave(runners, plan)
    for who, worker in built.items():
        with suppress(FailedError):
            worker.order("drop", name=who)
    rows = []
    for threads in settings.threads:
        for contestant in contestants:
            key = contestant.who, threads
            row: Row = {"case": {**case, "threads": threads}, "who": contestant.who}
            failure = failures.get(contestant.who) or found.failures.get(key)
            if failure is None:
                row |= _measured(found, key, works, amounts)
            else:
                row["failed"] = failure
            rows.append(row)
        same = rows[-len(contestants) :]
        print("  " + tables.line(same), file=sys.stderr, flush=True)  # it takes minutes, or an hour
    return rows


def duels(
    workers: Workers, case: Case, contestants: Sequence[Contestant], works: Sequence[Work] = ()
) -> list[Row]:
    """Each of the others with ours alone, where all at once would not fit into memory.

    Ours has one row: that beside the first of them.
    """
    ours, *others = contestants
    rows: list[Row] = []
    for pair in [[ours, other] for other in others] or [[ours]]:
        found = race(workers, case, pair, works)
        rows += [row for row in found if row["who"] != ours.who] if rows else found
        if not workers.settings.quick:
            workers.end()  # what one of them left behind helps no other
    return rows


def _built(
    workers: Workers, case: Case, contestants: Sequence[Contestant]
) -> tuple[dict[str, Worker], dict[str, str]]:
    """Who is ready, and who cannot be."""
    built: dict[str, Worker] = {}
    failures: dict[str, str] = {}
    for contestant in contestants:
        try:
            if contestant.holds > 0.7 * free_memory():
                raise FailedError(
                    f"not run: it would hold {contestant.holds / 1e9:.0f} GB at once, and "
                    f"{free_memory() / 1e9:.0f} GB are free"
                )
            worker = workers.of(contestant)
            worker.order("build", name=contestant.who, target=contestant.target, case=case)
            if (contestant.warm or contestant.settles) and not workers.settings.quick:
                _settle(worker, contestant.who, workers.settings.threads)
            built[contestant.who] = worker
        except FailedError as failure:
            failures[contestant.who] = str(failure)
    return built, failures


def _settle(worker: Worker, who: str, threads: Sequence[int]) -> None:
    """Call until the heap has grown to where no call needs another page."""
    quiet = 0
    for turn in range(SETTLING):
        faults = worker.run(who, threads[turn % len(threads)], 1).faults
        quiet = quiet + 1 if faults < FEW else 0
        if quiet == 3:
            return


def _measured(
    found: Measured, key: Key, works: Sequence[Work], amounts: Mapping[Key, float]
) -> Row:
    """What one contestant's samples say, by themselves and against others of the same round."""
    who, threads = key
    samples = found.samples[key]
    row: Row = {
        "wall": spread([sample.wall for sample in samples]),
        "cpu": spread([sample.cpu for sample in samples]),
        "faults": round(spread([sample.faults for sample in samples])["median"]),
        "rounds": len(samples),
        "calls": found.calls[key],
        "samples": [[rounded(s.wall), rounded(s.cpu), round(s.faults)] for s in samples],
    }
    ours = found.samples.get((OURS, threads))
    if who != OURS and ours:
        row["times"] = spread(_ratios(samples, ours))
        row["times_cpu"] = spread([s.cpu / max(o.cpu, 1e-9) for s, o in _pairs(samples, ours)])
    one = found.samples.get((who, 1))
    if threads > 1 and one:
        row["over_one"] = spread(_ratios(one, samples))
    shares = {}
    for work in works if amounts else ():
        limit = f"limit {work.limit}", threads
        rounds = _pairs(found.samples[limit], samples)
        shares[work.limit] = spread(
            [work.amount / amounts[limit] * at_best.wall / s.wall for at_best, s in rounds]
        )
    return row | ({"share": shares} if shares else {})


def _ratios(upper: Sequence[Sample], lower: Sequence[Sample]) -> list[float]:
    return [a.wall / b.wall for a, b in _pairs(upper, lower)]


def _pairs(left: Sequence[Sample], right: Sequence[Sample]) -> list[tuple[Sample, Sample]]:
    return list(zip(left, right, strict=True))


def mark_better(rows: Sequence[Row], among: Sequence[str]) -> None:
    """Note which of some contestants is the quickest, in each case: ours is held to that one."""
    cases: dict[str, list[Row]] = {}
    for row in rows:
        if row["who"] in among and "wall" in row:
            cases.setdefault(json.dumps(row["case"], sort_keys=True), []).append(row)
    for same in cases.values():
        min(same, key=lambda row: row["wall"]["median"])["better"] = True
