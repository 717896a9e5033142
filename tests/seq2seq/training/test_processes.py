"""`kill -9`, signals and a second process, on real processes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from regard.seq2seq.errors import RunError
from regard.seq2seq.training.lock import Lock
from tests.seq2seq.training.processes import STAGES

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("processes")
    command = [sys.executable, "-m", "tests.seq2seq.training.processes", str(folder)]
    alone = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=alone, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_killed_at_random_times_it_equals_a_run_never_stopped(found):
    kills = found["random"]
    assert len(kills["lost"]) == 5
    assert max(kills["lost"]) <= found["save_every"]
    for number, last in enumerate(kills["last"]):
        run = found[f"random-{number}"]
        assert (last, run["equal"], run["unfinished"]) == (0, True, 0)


@pytest.mark.parametrize("stage", STAGES)
def test_killed_in_a_save_it_equals_a_run_never_stopped(found, stage):
    run = found[stage]
    assert run["codes"] == [-9]
    assert max(run["lost"]) <= found["save_every"]
    assert (run["last"], run["equal"], run["unfinished"]) == (0, True, 0)


@pytest.mark.parametrize(("name", "code"), [("terminated", 143), ("interrupted", 130)])
def test_a_signal_saves_and_gives_the_exit_code(found, name, code):
    run = found[name]
    assert (run["code"], run["step"]) == (code, 6)
    assert (run["last"], run["equal"]) == (0, True)


def test_a_second_process_is_refused_until_the_first_dies(found):
    run = found["refused"]
    assert run["code"] == 2
    assert f"process {run['first']} is training in" in run["said"]
    assert "Wait until it ends" in run["said"]
    assert run["free"]
    assert (run["last"], run["equal"]) == (0, True)


def test_a_lock_is_released(tmp_path):
    with Lock(tmp_path):
        with pytest.raises(RunError, match=f"process {os.getpid()} is training in"), Lock(tmp_path):
            pass
        with pytest.raises(RunError, match=f"process {os.getpid()} is training in"), Lock(tmp_path):
            pass
    with Lock(tmp_path):
        pass


def test_a_folder_that_cannot_be_locked_is_named(tmp_path):
    (tmp_path / "run.lock").mkdir()
    with (
        pytest.raises(RunError, match=r"run\.lock cannot be locked: it is a folder"),
        Lock(tmp_path),
    ):
        pass
