"""Untrusted names reach a terminal as text: no control sequence and no override."""

import ast
import io
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from regard.cli.output import write_answer
from regard.seq2seq.training import Validation
from regard.seq2seq.training.reporters import LineReporter, RichReporter
from regard.tasks.run import train
from tests.cli.commands import ENVIRONMENT, ROOT, python, regard
from tests.tasks.translate.small import configured, write_pairs

EVIL = "x\x1b[31m\x07\x7f\x9b2J\u202ey\u2066z"
VISIBLE = r"x\x1b[31m\x07\x7f\x9b2J\u202ey\u2066z"
COMMANDS = set("\x1b\x07\x7f\x9b\u202e\u2066")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in a folder with such a name, and files with such names and words."""
    folder = tmp_path_factory.mktemp("hostile")
    pairs = write_pairs(folder / "pairs.tsv")
    train(folder / EVIL, configured(pairs, training__steps=2))
    (folder / f"{EVIL}.txt").write_text("one\n" + "two " * 9 + "\n", "utf-8")
    (folder / f"{EVIL}.tsv").write_text("one\n", "utf-8")
    (folder / f"bad{EVIL}.txt").write_bytes(b"\xff\n")
    (folder / "broken").mkdir()
    (folder / "broken" / "run.toml").write_text(f'"{EVIL}" = 1', "utf-8")
    return folder


SAID: dict[str, tuple[tuple[str, ...], int]] = {
    "a file that is not there": (("predict", EVIL, f"no{EVIL}"), 2),
    "a folder that is not there": (("predict", EVIL, f"no{EVIL}/a"), 2),
    "a run that is none": (("predict", f"no{EVIL}", f"{EVIL}.txt"), 2),
    "a run's name": (("predict", EVIL, f"{EVIL}.txt"), 0),
    "a line that is too long": (("predict", EVIL, f"{EVIL}.txt", "--max-source-length", "3"), 0),
    "bytes that are no text": (("predict", EVIL, f"bad{EVIL}.txt"), 2),
    "pairs that are none": (("evaluate", EVIL, f"{EVIL}.tsv"), 2),
    "a link file": (("predict", EVIL, f"{EVIL}.txt", "--alignments", f"no{EVIL}/a"), 2),
    "a verb": ((EVIL,), 2),
    "an option": (("predict", f"--{EVIL}"), 2),
    "a value of an option": (("predict", EVIL, "--beam", EVIL), 2),
    "a task": (("init", EVIL), 2),
    "a key": (("init", "translate", "--set", f"model.{EVIL}=3"), 2),
    "a key alone": (("init", "translate", "--set", EVIL), 2),
    "a value": (("init", "translate", "--set", f"model.kind={EVIL}"), 2),
    "a configuration": (("init", "translate", "--config", f"no{EVIL}.toml"), 2),
    "a key of a run": (("predict", "broken", f"{EVIL}.txt"), 2),
    "data": (("train", "translate", "--data", f"{EVIL}.tsv", "--out", "new"), 2),
    "a layer": (("show", EVIL, "one two", "1 2", "--layer", EVIL), 2),
    "units": (("align", EVIL, "pairs.tsv", "--units", EVIL), 2),
    "a picture": (("show", EVIL, "one", "1", "-o", f"{EVIL}.svg"), 0),
    "a kind of picture": (("show", EVIL, "one", "1", "-o", f"a.{EVIL}"), 2),
    "a view": (("show", EVIL, "one", "1", "--view", EVIL), 2),
    "what to do": (("predict", EVIL, f"{EVIL}.txt", "--too-long", EVIL), 2),
    "a check": (("check", "translate", "--data", f"{EVIL}.tsv"), 1),
}


@pytest.mark.parametrize(("asked", "code"), SAID.values(), ids=SAID)
def test_no_command_reaches_the_terminal(folder: Path, asked: tuple[str, ...], code: int) -> None:
    said = regard(*asked, cwd=folder)
    assert said.returncode == code, said.stderr
    assert not COMMANDS & set(said.stderr), ascii(said.stderr)
    if asked[0] == "check":
        assert not COMMANDS & set(said.stdout), ascii(said.stdout)
        assert VISIBLE in said.stdout


def test_a_name_is_shown_as_it_would_be_typed(folder: Path) -> None:
    said = regard("predict", EVIL, f"{EVIL}.txt", cwd=folder)
    assert said.stderr.startswith(f"{VISIBLE}: best averaged weights")


VERBS = """
import sys, warnings
from regard.cli.main import app, main

@app.command()
def warn(text: str) -> None:
    warnings.warn(text)

@app.command()
def fail(text: str) -> None:
    raise RuntimeError(text)

sys.exit(main())
"""
"""The command with verbs of our own, which repeat what they are given."""


@pytest.mark.parametrize(("verb", "code"), [("warn", 0), ("fail", 1)])
def test_warnings_and_tracebacks_are_escaped(verb: str, code: int) -> None:
    said = python("-c", VERBS, verb, EVIL)
    assert said.returncode == code
    assert VISIBLE in said.stderr
    assert not COMMANDS & set(said.stderr)


@pytest.mark.parametrize("kind", ["lines", "a bar"])
def test_what_a_run_reports_is_escaped(kind: str) -> None:
    heard = io.StringIO()
    reporter = (
        LineReporter(heard) if kind == "lines" else RichReporter(Console(file=heard, width=200))
    )
    reporter.noted(EVIL)
    reporter.validated(1, Validation({"loss": 1.0}, [EVIL], ""), best=False)
    assert heard.getvalue().count(VISIBLE) == 2
    assert not COMMANDS & set(heard.getvalue())


def on_terminal(*arguments: str, cwd: Path) -> str:
    """What a terminal is sent on the standard output."""
    theirs, ours = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "regard", *arguments],
        stdout=ours, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=ENVIRONMENT, cwd=cwd,
    ) as process:  # fmt: skip
        os.close(ours)
        found = b""
        while chunk := _read(theirs):
            found += chunk
        assert process.wait(timeout=60) == 0
    os.close(theirs)
    return found.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that nobody writes any more
        return b""


def test_answers_are_data_in_a_pipe_and_text_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_answer(EVIL)
    assert capsys.readouterr().out == f"{EVIL}\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    write_answer(EVIL)
    assert capsys.readouterr().out == f"{VISIBLE}\n"


def test_a_terminal_sees_no_override_of_a_picture(folder: Path) -> None:
    for more in ((), ("--json",), ("--check",)):
        shown = on_terminal("show", EVIL, f"{EVIL} two", f"1 {EVIL}", *more, cwd=folder)
        assert not COMMANDS & set(shown), ascii(shown)


PAST_IT = {"print", "typer.echo", "typer.secho", "sys.stdout.write", "sys.stderr.write"}
"""What would write past the functions that know a terminal from a file."""


def test_every_verb_says_what_it_says_by_one_function() -> None:
    found = [
        f"{path.name}:{call.lineno}"
        for path in sorted((ROOT / "regard" / "cli").glob("*.py"))
        if path.name not in ("output.py", "run_command.py", "main.py")
        for call in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(call, ast.Call) and ast.unparse(call.func) in PAST_IT
    ]
    assert found == []
