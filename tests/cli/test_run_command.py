"""Errors become one line and an exit code; a bug keeps its traceback."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from regard.cli.main import main
from regard.cli.run_command import format_error, run_command
from regard.seq2seq.errors import DataError, RunError
from tests.cli.commands import ENVIRONMENT, alone, python, regard

VERBS = """
import sys
import time
from regard.cli.main import app, main
from regard.seq2seq.errors import RunError

@app.command()
def fail(kind: str) -> None:
    print("begun")
    raise {"ours": RunError("runs/a: a line\\nand another."), "bug": KeyError("oh"),
           "file": FileNotFoundError(2, "No such file", "x.txt"),
           "stop": KeyboardInterrupt()}[kind]

@app.command()
def wait() -> None:
    print("waiting", flush=True)
    time.sleep(30)

@app.command()
def talk() -> None:
    for _ in range(100_000):
        print("many words")

sys.exit(main())
"""
"""The command with verbs of our own, which fail as we like."""


def error(problem: BaseException) -> object:
    raise problem


def test_an_error_is_one_line_with_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_command(lambda: error(DataError("a.tsv: no\nsuch file."))) == 2
    assert capsys.readouterr() == ("", "regard: a.tsv: no such file.\n")
    special = RunError("ended")
    special.code = 7
    assert run_command(lambda: error(special)) == 7


def test_what_is_no_users_mistake_is_raised() -> None:
    for bug in (KeyError("x"), ValueError("y"), OSError("z")):
        assert format_error(bug) is None
        with pytest.raises(type(bug)):
            run_command(lambda: error(bug))


def test_codes_that_are_returned_are_handed_on() -> None:
    assert [run_command(lambda: code) for code in (None, 0, 3, "text")] == [0, 0, 3, 0]


def test_in_a_process_all_of_it_holds() -> None:
    said = python("-c", VERBS, "fail", "ours")
    assert (said.returncode, said.stdout) == (2, "begun\n")
    assert said.stderr == "regard: runs/a: a line and another.\n"
    said = python("-c", VERBS, "fail", "file")
    assert (said.returncode, said.stderr) == (2, "regard: x.txt: No such file.\n")


def test_debug_shows_where_an_error_comes_from() -> None:
    for arguments in (["--debug", "fail", "ours"], ["fail", "ours", "--debug"]):
        said = python("-c", VERBS, *arguments)
        assert said.returncode == 2
        assert "Traceback" in said.stderr
        assert said.stderr.endswith("regard: runs/a: a line and another.\n")


def test_a_bug_keeps_its_traceback() -> None:
    said = python("-c", VERBS, "fail", "bug")
    assert said.returncode == 1
    assert "KeyError: 'oh'" in said.stderr


def test_an_interrupt_is_130_and_silent() -> None:
    said = python("-c", VERBS, "fail", "stop")
    assert (said.returncode, said.stderr) == (130, "")
    with subprocess.Popen(
        [sys.executable, "-c", VERBS, "wait"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=20)[1] == ""
        assert process.returncode == 130


@pytest.mark.parametrize("verb", [["talk"], ["init", "translate"], ["--help"]], ids=str)
def test_a_reader_that_leaves_is_no_error(verb: list[str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", VERBS, *verb],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=20) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full")
def test_a_full_disk_is_reported_in_one_line() -> None:
    with open("/dev/full", "w") as full:
        said = subprocess.run(
            [sys.executable, "-c", VERBS, "init", "translate"], check=False,
            stdout=full, stderr=subprocess.PIPE, env=ENVIRONMENT, text=True, timeout=60,
        )  # fmt: skip
    assert (said.returncode, said.stderr) == (2, "regard: No space left on device.\n")


def test_a_mistyped_verb_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inti"]) == 2
    assert capsys.readouterr().err == (
        "regard: No such command 'inti'. Did you mean 'init'? See regard --help.\n"
    )


def test_a_mistyped_option_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "translate", "--dat", "x"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("regard: No such option: --dat")
    assert "--data" in said
    assert said.endswith("See regard init --help.\n")
    assert said.count("\n") == 1


def test_version_and_help() -> None:
    said = alone("--version")
    assert (said.returncode, said.stderr) == (0, "")
    assert said.stdout.startswith("regard ")
    for asking in (["--help"], ["-h"], []):
        said = regard(*asking)
        assert (said.returncode, said.stderr) == (0, "")
        assert "Before training" in said.stdout
        assert "init" in said.stdout
