"""The command as a user types it: in a process of its own, or in this one, which has torch."""

import io
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, contextmanager, nullcontext, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

import torch
import torch._dynamo  # it sets a variable of the environment when it is first imported

from regard.cli.main import main

ROOT = Path(__file__).parents[2]
TERMINAL = {"NO_COLOR": "1", "COLUMNS": "100"}
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), **TERMINAL}
CommandResult = subprocess.CompletedProcess[str]


def regard(*arguments: str, cwd: Path | None = None) -> CommandResult:
    """`regard …` in this process. Where a process matters, there is `alone`."""
    out, err = _stream(), _stream()
    with (
        torch.random.fork_rng(devices=[]),
        mock.patch.dict(os.environ, TERMINAL),
        chdir(cwd) if cwd else nullcontext(),
        redirect_stdout(out),
        redirect_stderr(err),
        assert_left_as_found(),
    ):
        code = main(arguments)
    return subprocess.CompletedProcess(arguments, code, _written(out), _written(err))


def alone(*arguments: str, cwd: Path | None = None) -> CommandResult:
    """`regard …` in a process of its own: nothing was imported before it."""
    return python("-m", "regard", *arguments, cwd=cwd)


def python(*arguments: str, cwd: Path | None = None) -> CommandResult:
    """`python …`, with this package to be found."""
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=ENVIRONMENT,
        cwd=cwd,
        timeout=60,
        check=False,
    )


@contextmanager
def assert_left_as_found() -> Iterator[None]:
    """A verb that changes the process for good would change the tests after it."""
    before = _standing()
    yield
    assert _standing() == before


def _standing() -> dict[str, object]:
    return {
        "folder": os.getcwd(),
        "environment": dict(os.environ),
        "streams": (sys.stdin, sys.stdout, sys.stderr),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
        "threads": torch.get_num_threads(),
        "gradients": torch.is_grad_enabled(),
        "numbers": torch.get_default_dtype(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
    }


def _stream() -> io.TextIOWrapper:
    """As poor as a terminal can be: UTF-8 is for the command to ask for."""
    return io.TextIOWrapper(io.BytesIO(), encoding="ascii")


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    binary = stream.buffer
    assert isinstance(binary, io.BytesIO)
    return binary.getvalue().decode("utf-8")
