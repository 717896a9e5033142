"""The machine's limits: arithmetic and memory bandwidth.

Loops in C that stay in registers, in the widest vectors of the CPU: multiply-adds, reciprocals (an
approximation with one Newton step, and a division), the element of an additive score in several
forms, and exponentials. Memory bandwidth is that of the triad a = b + s·c over arrays larger than
any cache. A *share of the limit* on another page comes from these loops, run in the same rounds.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.measure import FailedError, Runner, interleave, spread, timed
from benchmarks.results import Row
from benchmarks.settings import Outcome, Settings

HERE = Path(__file__).parent
BUILT = HERE.parent / ".benchmarks" / "limits"
FLAGS = ("-O3", "-ffp-contract=fast", "-shared", "-fPIC")
LEVELS = ("portable C", "AVX2", "AVX-512")
LABELS = {
    "fma": "multiply-adds",
    "reciprocal": "reciprocals: approximation and a step of Newton's",
    "divide": "reciprocals: division",
    "additive_one": "additive elements: fma, reciprocal, fma",
    "additive_two": "additive elements: one reciprocal for two",
    "additive_four": "additive elements: one reciprocal for four",
    "additive_tanh": "additive elements: rational tanh",
    "exponential": "exponentials",
    "triad": "bytes moved through memory",
}
CALL = 0.01
"""Seconds that one call of a loop takes: long enough to hide the start of a thread."""

ARRAYS, FEWER = 3 * (256 << 20), 3 * (16 << 20)
"""Bytes of the triad's arrays, for all threads; and in a quick run."""


def runner(name: str, threads: int, settings: Settings) -> tuple[Runner, float]:
    """A runner for one limit, and how many elements or bytes a call of it has."""
    if name == "triad":
        triad, moved = _triad(threads, FEWER if settings.quick else ARRAYS)
        return timed(triad), moved
    loop, iterations = getattr(_library(), f"limits_{name}"), _iterations(name)
    call = _on_threads(lambda _: loop(iterations), threads)
    return timed(call), float(iterations * _library().limits_elements() * threads)


def run(settings: Settings) -> Outcome:
    """All limits, with each number of threads."""
    made = {(name, n): runner(name, n, settings) for name in LABELS for n in settings.threads}
    found = interleave({key: pair[0] for key, pair in made.items()}, settings.plan)
    rows: list[Row] = []
    for name, threads in made:
        amount = made[name, threads][1]
        rates = [amount / sample.wall for sample in found.samples[name, threads]]
        row = {"limit": name, "label": LABELS[name], "threads": threads, "rate": spread(rates)}
        rows.append(row)
    return Outcome(rows, about={"vectors": LEVELS[_library().limits_level()]})


def c_compiler() -> str | None:
    """The C compiler of this machine, if it has one."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


@cache
def _library() -> ctypes.CDLL:
    """The loops, compiled when they are first needed."""
    if (compiler := c_compiler()) is None:
        raise FailedError("there is no C compiler here to measure the machine with")
    sources = [HERE / "limits.c", HERE / "limits_loops.h"]
    text = b"".join(source.read_bytes() for source in sources)
    path = BUILT / f"{hashlib.sha256(text).hexdigest()[:16]}.so"
    if not path.exists():
        BUILT.mkdir(parents=True, exist_ok=True)
        half = path.with_suffix(f".{os.getpid()}")
        command = [compiler, *FLAGS, "-o", str(half), str(sources[0]), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise FailedError(f"the loops do not compile: {done.stderr.splitlines()[0]}")
        half.replace(path)
    library = ctypes.CDLL(str(path))
    library.limits_elements.restype = ctypes.c_long
    for name in LABELS:
        loop = getattr(library, f"limits_{name}")
        loop.restype = ctypes.c_float
        pointers = [ctypes.c_void_p] * 3 if name == "triad" else []
        loop.argtypes = [*pointers, ctypes.c_long]
    return library


@cache
def _iterations(name: str) -> int:
    """How many iterations of a loop fill a call."""
    loop, iterations = getattr(_library(), f"limits_{name}"), 1000
    while True:
        began = time.perf_counter()
        loop(iterations)
        took = time.perf_counter() - began
        if took > CALL / 2:
            return max(1, round(iterations * CALL / took))
        iterations *= 2


def _triad(threads: int, total: int) -> tuple[Callable[[], object], float]:
    """A pass through three arrays, each thread through its part, and the bytes of all of them."""
    arrays, triad = _arrays(total), _library().limits_triad
    size = len(arrays[0]) // threads

    def through(index: int) -> float:
        return triad(*(array[index * size :].ctypes.data for array in arrays), size)

    return _on_threads(through, threads), 3.0 * 4 * size * threads


@cache
def _arrays(total: int) -> list[np.ndarray]:
    return [np.full(total // 12, 0.5, np.float32) for _ in range(3)]


def _on_threads(work: Callable[[int], object], threads: int) -> Callable[[], object]:
    """The same work on each thread at once; ctypes lets go of the interpreter's lock."""
    if threads == 1:
        return lambda: work(0)
    return lambda: list(_pool(threads).map(work, range(threads)))


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)
