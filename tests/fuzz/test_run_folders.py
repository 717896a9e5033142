"""Some damaged run folders; `python -m tests.fuzz.run_folders` tries as many as one likes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.run_folders import judged

ROOT = Path(__file__).parents[2]
CASES = 60


def test_a_damaged_folder_is_answered_as_before_or_told() -> None:
    alone = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.fuzz.run_folders", str(CASES)]
    done = subprocess.run(
        command, cwd=ROOT, env=alone, capture_output=True, check=False, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = [line.split(maxsplit=1) for line in done.stdout.splitlines()]
    assert sum(int(count) for count, _ in counts) == CASES
    assert {"answered", "refused"} <= {outcome for _, outcome in counts}


@pytest.mark.parametrize(
    ("code", "out", "err", "outcome"),
    [
        (0, "1\n", "run: best weights", "answered"),
        (0, "2\n", "run: best weights", "WRONG"),
        (0, "2\n", "a is broken (b); step 0 is used", "answered with a note"),
        (0, "1\n2\n", "", "OTHER LINES"),
        (2, "", "regard: no.\n", "refused"),
        (2, "", "", "NOT ONE LINE"),
        (2, "", "regard: no.\nregard: no.\n", "NOT ONE LINE"),
        (1, "", "Traceback (most recent call last):", "TRACEBACK"),
        (1, "", "regard: no.", "CODE 1"),
    ],
)  # fmt: skip
def test_outcomes_are_told_apart(code: int, out: str, err: str, outcome: str) -> None:
    said = subprocess.CompletedProcess([], code, out, err)
    assert judged(said, "1\n", forged=False) == outcome
