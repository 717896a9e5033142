"""The process that a contestant lives in: takes orders as JSON lines, answers in kind.

It runs in the environment of any peer, so it imports nothing but the standard library by itself.
"""

import argparse
import ctypes
import gc
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import IO, Any

from benchmarks.measure import FailedError, timed

M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -4, -8
PR_SET_PDEATHSIG = 1


class Bench:
    """What was built here, by name, and the orders that can be given."""

    def __init__(self) -> None:
        self.built: dict[str, Callable[[], object]] = {}
        self.threads = 0

    def build(self, name: str, target: str, case: dict[str, Any]) -> None:
        """Make a contestant ready: all but the call that is measured."""
        self.built[name] = _found(target)(case)

    def run(self, name: str, calls: int, threads: int) -> dict[str, float]:
        """One repetition."""
        self._use(threads)
        return vars(timed(self.built[name])(calls))

    def peak(self, name: str, threads: int) -> int:
        """Bytes that one call holds at most, beyond what was held before it."""
        self._use(threads)
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")
        before = _status("VmRSS")
        self.built[name]()
        return max(0, _status("VmHWM") - before)

    def drop(self, name: str) -> None:
        """Forget a contestant."""
        self.built.pop(name, None)
        gc.collect()

    def ask(self, target: str, case: dict[str, Any], threads: int) -> Any:
        """What a function answers, as JSON."""
        self._use(threads)
        return _found(target)(case)

    def answer(self, target: str, case: dict[str, Any], threads: int) -> Any:
        """What the call that would be measured gives, as JSON."""
        self._use(threads)
        return _found(target)(case)()

    def versions(self, packages: list[str]) -> dict[str, str]:
        """Of the packages that are installed here."""
        return {name: metadata.version(name) for name in packages}

    def _use(self, threads: int) -> None:
        """So many threads from now on. JAX has no such option: it is limited to so many cores."""
        if threads == self.threads:
            return
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(threads)
        if "jax" in sys.modules:
            for task in os.listdir("/proc/self/task"):
                os.sched_setaffinity(int(task), CORES[:threads])
        self.threads = threads


CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def _found(target: str) -> Callable[[dict[str, Any]], Any]:
    """`"plain:additive"` is the function `additive` of `benchmarks.contestants.plain`."""
    module, function = target.split(":")
    return getattr(importlib.import_module(f"benchmarks.contestants.{module}"), function)


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(field)


def keep_heap() -> None:
    """Let glibc keep what is freed, and take large blocks from it too, for all threads alike."""
    libc = ctypes.CDLL(None)
    libc.mallopt(M_ARENA_MAX, 1)
    libc.mallopt(M_MMAP_MAX, 0)
    libc.mallopt(M_TRIM_THRESHOLD, -1)


def follow_parent() -> None:
    """End when the parent does, and be the first to go if memory runs out."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    Path("/proc/self/oom_score_adj").write_text("1000")


def serve(orders: IO[str], answers: IO[str]) -> None:
    """Obey until there are no more orders."""
    bench = Bench()
    for line in orders:
        order = json.loads(line)
        try:
            answer = {"answer": getattr(bench, order.pop("order"))(**order)}
        except FailedError as error:
            answer = {"error": str(error)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def main() -> None:
    """Start serving; what libraries print goes to standard error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--warm", action="store_true", help="keep freed heap")
    if parser.parse_args().warm:
        keep_heap()
    if sys.platform == "linux":
        follow_parent()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    serve(sys.stdin, answers)


if __name__ == "__main__":
    main()
