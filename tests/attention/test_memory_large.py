"""A million keys are read exactly, and nobody ever holds a weight for each pair.

Each read has a process of its own, whose peak of memory is its own, and which is not slowed by the
checks of shapes that the tests switch on.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WEIGHTS = 64 * 1_000_000 * 4 / 1e6
"""What the weights of 64 queries would take, in MB."""


def measured(case: str) -> dict[str, float]:
    command = [sys.executable, "-m", "tests.attention.million_keys", case]
    # What is freed goes back at once, or a peak would depend on what glibc still holds.
    prompt = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "1000000"}
    ran = subprocess.run(command, cwd=ROOT, env=prompt, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.parametrize(
    ("case", "most"),
    [
        # Softmax of dot products goes through the keys in parts, and copies none of them.
        ("softmax", WEIGHTS / 16),
        # Its scores are sorted with their indices and summed: a dozen numbers a pair, of 3 queries.
        ("sparsemax", 12 * 3 * 4),
        # 2²⁴ numbers at a time, and twice as many that are made of them.
        ("inverse distance", 3 * 2**24 * 4 / 1e6),
    ],
)
def test_a_million_keys(case: str, most: float) -> None:
    found = measured(case)
    assert found["grown"] < most
    assert found["off"] < 1e-5
