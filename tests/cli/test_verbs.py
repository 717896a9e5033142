"""The verbs as a user types them, from pairs to scores."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.commands import ENVIRONMENT, regard
from tests.tasks.translate.small import SETTINGS, write_pairs


def settings(**more: object) -> list[str]:
    """The small model's settings, each as `--set`."""
    said = []
    for table, values in {**SETTINGS, **more}.items():
        for key, value in values.items():  # type: ignore[union-attr]
            said += ["--set", f"{table}.{key}={_toml(value)}"]
    return said


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + "}"
    return json.dumps(value)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learned a little, and its pairs beside it."""
    folder = tmp_path_factory.mktemp("verbs")
    write_pairs(folder / "pairs.tsv")
    said = regard(
        "train", "translate", "--data", "pairs.tsv", "--out", "run", *settings(), cwd=folder
    )
    assert said.returncode == 0, said.stderr
    assert "finished at step 12" in said.stderr
    return folder


def test_line_n_answers_line_n(run: Path) -> None:
    (run / "input.txt").write_text("one two\n\nthree\n   \nfour four zero", encoding="utf-8")
    said = regard("predict", "run", "input.txt", cwd=run)
    assert said.returncode == 0, said.stderr
    lines = said.stdout.split("\n")
    assert len(lines) == 6  # five answers, each with its newline
    assert lines[1] == lines[3] == ""
    assert "averaged weights, of step" in said.stderr


def test_no_lines_have_no_answers(run: Path) -> None:
    (run / "nothing").write_bytes(b"")
    said = regard("predict", "run", "nothing", cwd=run)
    assert (said.returncode, said.stdout) == (0, "")


def test_several_answers_are_json(run: Path) -> None:
    said = regard("predict", "run", "input.txt", "--best", "2", "--beam", "3", cwd=run)
    told = [json.loads(line) for line in said.stdout.splitlines()]
    assert [each["line"] for each in told] == [1, 2, 3, 4, 5]
    assert [len(each["answers"]) for each in told] == [2, 1, 2, 1, 2]


def test_scores_have_signatures(run: Path) -> None:
    said = regard("evaluate", "run", "pairs.tsv", "--json", cwd=run)
    scores = {score["name"]: score for score in json.loads(said.stdout)}
    assert set(scores) == {"BLEU", "chrF2", "exact"}
    assert "version" in scores["BLEU"]["signature"]
    assert scores["exact"]["count"] == 120


def test_the_same_again_says_that_it_is_done(run: Path) -> None:
    again = ("train", "translate", "--data", "pairs.tsv", "--out", "run", *settings())
    said = regard(*again, cwd=run)
    assert said.returncode == 0
    assert "already finished at step 12" in said.stderr


def test_another_rate_is_refused(run: Path) -> None:
    again = ("train", "translate", "--data", "pairs.tsv", "--out", "run", *settings())
    said = regard(*again, "--set", "training.rate=0.5", cwd=run)
    assert said.returncode == 2
    assert said.stderr.startswith("regard: training.rate is 0.5")


def test_check_shows_what_is_wrong(run: Path) -> None:
    assert regard("check", "translate", "--data", "pairs.tsv", cwd=run).returncode == 0
    broken = "\n".join(["one\t1", "two", "\t3", "four\t4"]) + "\n"
    (run / "broken.tsv").write_text(broken, encoding="utf-8")
    said = regard("check", "translate", "--data", "broken.tsv", cwd=run)
    assert said.returncode == 1
    for line in (2, 3):
        assert f"broken.tsv, line {line}" in said.stdout


def test_errors_are_one_line(run: Path) -> None:
    (run / "latin1.txt").write_bytes("one\nà\n".encode("latin-1"))
    for arguments in (
        ("predict", "run", "latin1.txt"),
        ("predict", "run", "nothing.txt"),
        ("predict", ".", "input.txt"),
        ("evaluate", "run", "nothing.tsv"),
        ("train", "translate", "--out", "elsewhere"),
        ("train", "translate", "--data", "nothing.tsv", "--out", "elsewhere"),
    ):
        said = regard(*arguments, cwd=run)
        assert said.returncode == 2, arguments
        assert said.stderr.startswith("regard: "), said.stderr
        assert len(said.stderr.strip().splitlines()) == 1, said.stderr
        assert said.stdout == ""


def test_ctrl_c_saves_and_the_same_command_goes_on(run: Path, tmp_path: Path) -> None:
    command = [
        sys.executable, "-m", "regard", "train", "translate",
        "--data", str(run / "pairs.tsv"), "--out", str(tmp_path), *settings(),
        "--set", "training.steps=100000",
    ]  # fmt: skip
    process = subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    log = tmp_path / "log.jsonl"
    while time.monotonic() < deadline and not (log.exists() and log.stat().st_size):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "run the same command to go on" in said
    saved = sorted((tmp_path / "checkpoints").iterdir())[-1].name
    assert int(saved.removeprefix("step-")) > 0
