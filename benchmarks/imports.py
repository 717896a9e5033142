"""Import time of all names of regard, against `import torch`, which it includes.

`import regard` alone takes less: names are imported lazily. Fresh processes in turn; the time is
that of the import, without the interpreter's start.
"""

import json
import subprocess
import sys

from benchmarks.measure import FailedError, Plan, Runner, Sample, interleave, spread
from benchmarks.results import Row
from benchmarks.settings import Outcome, Settings, promise

PROGRAM = """
import json, time
wall, cpu = time.perf_counter(), time.process_time()
from {module} import {names}
print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]))
"""


def run(settings: Settings) -> Outcome:
    """Both, interleaved."""
    rounds = 3 if settings.quick else 21
    plan = Plan(rounds=rounds, seconds=0.0, most=rounds, repetition=0.0, warmups=1)
    found = interleave({name: importing(name) for name in ("regard", "torch")}, plan)
    rows: list[Row] = []
    for name, samples in found.samples.items():
        row: Row = {"case": {}, "who": f"import {name}", "rounds": len(samples)}
        row["wall"] = spread([sample.wall for sample in samples])
        row["cpu"] = spread([sample.cpu for sample in samples])
        rows.append(row)
    pairs = zip(found.samples["regard"], found.samples["torch"], strict=True)
    rows[0]["against_torch"] = spread([ours.wall / theirs.wall for ours, theirs in pairs])
    what = "`from regard import *` against `import torch`"
    held = promise(what, rows[:1], lambda row: row["against_torch"]["median"], at_most=2.0)
    return Outcome(rows, [held])


def importing(module: str) -> Runner:
    """A runner that imports a module in a process of its own."""

    def run(calls: int) -> Sample:
        assert calls == 1  # a module is imported but once
        program = PROGRAM.format(module=module, names="*" if module == "regard" else "Tensor")
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise FailedError(f"import {module} fails: {done.stderr.splitlines()[-1]}")
        return Sample(*json.loads(done.stdout))

    return run
