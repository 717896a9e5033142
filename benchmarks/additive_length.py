"""Additive attention by length: time and peak memory, context only.

As many queries as keys, values of the hidden size, projected beforehand. Each length is measured in
fresh processes: first the peak, which is the largest resident memory during a call minus the
resident memory before it (after one call at the smallest length, so that libraries are loaded),
then the time. A contestant that would need more memory than there is, or more than a minute a call
(extrapolated from its last length), is not run, and the table says so. All have the default
allocator.
"""

from collections.abc import Sequence
from contextlib import suppress

from benchmarks.machine import free_memory
from benchmarks.measure import FailedError
from benchmarks.race import Case, Contestant, Work, race, working
from benchmarks.results import Row
from benchmarks.settings import Outcome, Settings, promise
from benchmarks.steps import BOTH, FORWARD

LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
SHORT = (64, 512)
HIDDEN = 64
PATIENCE = 60.0
"""Seconds that a call may take."""

CONTESTANTS = (
    Contestant("regard", "ours:additive"),
    Contestant("PyTorch by hand", "plain:additive"),
    Contestant("Keras 3, JAX jitted", "keras_jax:additive", "keras-jax"),
)


def run(settings: Settings) -> Outcome:
    """Every length, forward and with the backward, with each number of threads."""
    rows: list[Row] = []
    versions: dict[str, dict[str, str]] = {}
    for threads in settings.choose(settings.threads, settings.threads[:1]):
        alone = Settings(settings.quick, (threads,), settings.peers)
        for step in (FORWARD, BOTH):
            before: list[Row] = []
            for length in settings.choose(LENGTHS, SHORT):
                case = {"batch": 1, "queries": length, "keys": length, "hidden": HIDDEN}
                before, found = one(alone, {**case, "step": step}, before)
                versions |= found
                rows += before
    return Outcome(rows, promises(rows), versions)


def one(
    settings: Settings, case: Case, before: Sequence[Row]
) -> tuple[list[Row], dict[str, dict[str, str]]]:
    """One length: whoever can still go on, the peak and then the time."""
    reasons = {who: reason for who in _names() if (reason := _too_much(who, case, before))}
    able = [contestant for contestant in CONTESTANTS if contestant.who not in reasons]
    elements = float(case["queries"] * case["keys"] * HIDDEN)
    work = Work("additive_four", elements * (1 if case["step"] == FORWARD else 2))
    (threads,) = settings.threads
    with working(settings) as workers:
        peaks: dict[str, int] = {}
        for contestant in able:
            with suppress(FailedError):  # the race finds the same, and says so
                worker = workers.of(contestant)
                tiny = {**case, "queries": 64, "keys": 64}
                for name, given in (("tiny", tiny), ("peak", case)):
                    worker.order("build", name=name, target=contestant.target, case=given)
                    peaks[contestant.who] = worker.order("peak", name=name, threads=threads)
                    worker.order("drop", name=name)
        rows = race(workers, case, able, [work])
        rows = [row | ({"peak": peaks[row["who"]]} if row["who"] in peaks else {}) for row in rows]
        full = {**case, "threads": threads}
        rows += [{"case": full, "who": who, "failed": reason} for who, reason in reasons.items()]
        return rows, workers.versions


def promises(rows: Sequence[Row]) -> list[Row]:
    """What the longest must show."""
    ours = [r for r in rows if r["who"] == "regard" and r["case"]["queries"] == max(LENGTHS)]
    wanted = ((FORWARD, 64.0), (BOTH, 128.0))
    return [
        promise(
            f"additive, length {max(LENGTHS)}, {step}: peak extra memory in MB",
            [row for row in ours if row["case"]["step"] == step],
            lambda row: row["peak"] / 1e6 if "peak" in row else None, at_most=limit,
        )
        for step, limit in wanted
    ]  # fmt: skip


def _names() -> list[str]:
    return [contestant.who for contestant in CONTESTANTS]


def _too_much(who: str, case: Case, before: Sequence[Row]) -> str | None:
    """Why a contestant is not run at this length, extrapolated from the last one."""
    last = next((row for row in before if row["who"] == who), None)
    if last is None:
        return None
    if "wall" not in last:
        return str(last["failed"])
    growth = (case["queries"] / last["case"]["queries"]) ** 2
    memory, free = last.get("peak", 0) * growth, free_memory()
    if memory > 0.7 * free:
        return f"not run: it would hold {memory / 1e9:.0f} GB, and {free / 1e9:.0f} GB are free"
    seconds = last["wall"]["median"] * growth
    if seconds > PATIENCE:
        return f"not run: a call would take about {seconds:.0f} s"
    return None
