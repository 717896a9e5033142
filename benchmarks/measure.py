"""How long things take: repetitions in turn, medians with their spread."""

import math
import resource
import statistics
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field


class FailedError(Exception):
    """A contestant cannot go on; the message says why."""


@dataclass(frozen=True)
class Sample:
    """What one call cost in seconds, on average over the calls of a repetition.

    `cpu` sums all threads; `faults` are pages that the system had to hand out.
    """

    wall: float
    cpu: float
    faults: float = 0.0


Runner = Callable[[int], Sample]
"""One repetition of so many calls."""


@dataclass(frozen=True)
class Plan:
    """How often to measure: so many rounds, more while there is time, fewer if each is long."""

    rounds: int
    seconds: float
    most: int
    repetition: float
    """How long a repetition lasts at least: short calls are repeated to fill it."""

    warmups: int
    """Calls before the first that counts."""

    longest: float = 60.0
    """Seconds after which three rounds are enough; a tenth of it, and one call warms up enough."""


CAREFUL = Plan(rounds=9, seconds=2.0, most=40, repetition=0.05, warmups=2, longest=20.0)
QUICK = Plan(rounds=2, seconds=0.05, most=3, repetition=0.002, warmups=1)
LEAST = 3
"""Rounds that are never saved."""


@dataclass
class Measured:
    """What came of it: for each contestant one sample a round, or why there is none."""

    samples: dict[Hashable, list[Sample]] = field(default_factory=dict)
    calls: dict[Hashable, int] = field(default_factory=dict)
    failures: dict[Hashable, str] = field(default_factory=dict)


def timed(
    function: Callable[[], object],
    wall: Callable[[], float] = time.perf_counter,
    cpu: Callable[[], float] = time.process_time,
) -> Runner:
    """A runner for a function of this process; of many short calls the first does not count."""

    def run(calls: int) -> Sample:
        if calls > 1:
            function()
        faults, began, worked = _faults(), wall(), cpu()
        for _ in range(calls):
            function()
        took, work = wall() - began, cpu() - worked
        return Sample(took / calls, work / calls, (_faults() - faults) / calls)

    return run


def interleave(
    runners: Mapping[Hashable, Runner], plan: Plan, clock: Callable[[], float] = time.perf_counter
) -> Measured:
    """Measure all of them in turn, round after round; each round another one begins.

    Whoever raises `FailedError` is out, with its reason; the others go on.
    """
    found, racing = Measured(), dict(runners)

    def attempt(name: Hashable, action: Callable[[], object]) -> object:
        try:
            return action()
        except FailedError as error:
            found.failures[name] = str(error)
            del racing[name]
            return None

    for name, run in runners.items():
        attempt(name, lambda run=run: _warmed(run, plan))
    for name in list(racing):
        calls = attempt(name, lambda run=racing[name]: _enough(run, plan.repetition))
        if calls is not None:
            found.calls[name], found.samples[name] = int(calls), []
    began, done = clock(), 0
    while racing and _continues(plan, done, clock() - began):
        for name in _rotated(list(racing), done):
            calls = found.calls[name]
            sample = attempt(name, lambda run=racing[name], calls=calls: run(calls))
            if isinstance(sample, Sample):
                found.samples[name].append(sample)
        done += 1
    for name in found.failures:
        found.samples.pop(name, None)
    return found


def spread(values: Sequence[float]) -> dict[str, float]:
    """The median, and where a tenth lies below and above."""
    return {
        "median": rounded(statistics.median(values)),
        "low": rounded(percentile(values, 0.1)),
        "high": rounded(percentile(values, 0.9)),
    }


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which this share of them lies, between two of them if need be."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low, high = math.floor(place), math.ceil(place)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def rounded(value: float, digits: int = 5) -> float:
    """The value to so many digits that mean something."""
    return float(f"{value:.{digits}g}")


def _warmed(run: Runner, plan: Plan) -> None:
    for _ in range(plan.warmups):
        if run(1).wall > plan.longest / 10:
            return


def _continues(plan: Plan, done: int, passed: float) -> bool:
    if done < min(plan.rounds, LEAST):
        return True
    if done < plan.rounds:
        return passed < plan.longest
    return done < plan.most and passed < plan.seconds


def _enough(run: Runner, seconds: float) -> int:
    """How many calls fill this many seconds."""
    calls = 1
    while (took := run(calls).wall * calls) < seconds / 2 and calls < 1_000_000:
        calls = max(calls * 2, min(calls * 10, math.ceil(seconds / max(took / calls, 1e-9))))
    return max(1, math.ceil(calls * seconds / max(took, seconds)))


def _rotated(names: list[Hashable], by: int) -> list[Hashable]:
    by %= len(names)
    return names[by:] + names[:by]


def _faults() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
