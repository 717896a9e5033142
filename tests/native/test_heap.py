"""A kept heap saves page faults while it lasts, and is handed back after."""

import os
import subprocess
import sys

import pytest

from regard import kernels

PROGRAM = """
import resource
import torch
from regard import kernels

def faults(steps=20):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(steps):
        torch.ones(1 << 22).add(1)  # 16 MB, freed at once
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def resident():
    return int(open("/proc/self/statm").read().split()[1])

faults()
before = faults()
with kernels.keep_heap() as kept:
    faults()
    during, large = faults(), resident()
small = resident()
print(int(kept), before, during, faults(), large, small)
"""


def test_it_saves_faults_and_gives_the_memory_back() -> None:
    # Left alone, glibc moves its thresholds by what was freed before, and may keep as much itself.
    fixed = {"MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **fixed}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    kept, before, during, after, large, small = map(int, done.stdout.split())
    assert kept
    assert before > 10_000  # 20 steps of thousands of pages
    assert during < before / 50
    assert after > 1_000  # what was kept has been handed back, and is fetched again
    assert small < large


def test_without_glibc_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.native.process._glibc", lambda: None)
    with kernels.keep_heap() as kept:
        assert not kept
