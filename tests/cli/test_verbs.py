"""The verbs as a user types them, from pairs to scores."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.commands import ENVIRONMENT, alone, regard
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
    """A run that has learned a little, its pairs beside it, and what to ask it."""
    folder = tmp_path_factory.mktemp("verbs")
    write_pairs(folder / "pairs.tsv")
    asked = "one two\n\nthree\n   \nfour four zero"
    (folder / "input.txt").write_text(asked, encoding="utf-8")
    said = alone(
        "train", "translate", "--data", "pairs.tsv", "--out", "run", *settings(), cwd=folder
    )
    assert said.returncode == 0, said.stderr
    assert "finished at step 12" in said.stderr
    return folder


def test_line_n_answers_line_n(run: Path) -> None:
    said = alone("predict", "run", "input.txt", cwd=run)
    assert said.returncode == 0, said.stderr
    lines = said.stdout.split("\n")
    assert len(lines) == 6  # five answers, each with its newline
    assert lines[1] == lines[3] == ""
    assert "averaged weights, of step" in said.stderr


def test_lines_may_come_through_a_pipe(run: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-m", "regard", "predict", "run"],
        input=(run / "input.txt").read_bytes(),
        cwd=run,
        env=ENVIRONMENT,
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert said.stdout.decode() == regard("predict", "run", "input.txt", cwd=run).stdout
    assert said.stdout.strip()


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
    said = alone("evaluate", "run", "pairs.tsv", "--json", cwd=run)
    scores = {score["name"]: score for score in json.loads(said.stdout)}
    assert set(scores) == {"BLEU", "chrF2", "exact", "perplexity"}
    assert "version" in scores["BLEU"]["signature"]
    assert scores["exact"]["count"] == 120


def test_a_given_target_is_scored_line_by_line(run: Path) -> None:
    (run / "given.tsv").write_text("one two three\t1 2 3\none two three\t4 4 4 4\n", "utf-8")
    lines = alone("score", "run", "given.tsv", cwd=run).stdout.splitlines()
    assert len(lines) == 2
    assert all(float(line) < 0 for line in lines)
    told = regard("score", "run", "given.tsv", "--json", cwd=run).stdout.splitlines()
    assert [json.loads(line)["tokens"] for line in told] == [4, 5]
    assert [f"{json.loads(line)['log_prob']:.6f}" for line in told] == lines


def test_the_best_answer_scores_what_predict_says(run: Path) -> None:
    (run / "one.txt").write_text("two one zero\n", encoding="utf-8")
    found = regard("predict", "run", "one.txt", "--best", "3", cwd=run).stdout
    answer = json.loads(found)["answers"][0]
    (run / "one.tsv").write_text(f"two one zero\t{answer['text']}\n", encoding="utf-8")
    said = json.loads(regard("score", "run", "one.tsv", "--json", cwd=run).stdout)
    assert said["log_prob"] / said["tokens"] == pytest.approx(answer["score"], abs=2e-5)


def test_draws_follow_the_seed(run: Path) -> None:
    drawn = [
        regard("predict", "run", "input.txt", "--sample", "--seed", seed, cwd=run).stdout
        for seed in ("1", "1", "2")
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    cold = ("--sample", "--temperature", "0.0001", "--top-p", "0.9")
    sharp = regard("predict", "run", "input.txt", *cold, cwd=run).stdout
    assert sharp == regard("predict", "run", "input.txt", "--beam", "1", cwd=run).stdout


def test_a_run_that_joins_itself_in_an_ensemble_changes_nothing(run: Path) -> None:
    alone = regard("predict", "run", "input.txt", cwd=run)
    twice = regard("predict", "run", "input.txt", "--ensemble", "run", cwd=run)
    assert twice.returncode == 0, twice.stderr
    assert twice.stdout == alone.stdout
    assert " + best averaged weights" in twice.stderr


def test_what_cannot_be_asked_is_reported_in_one_line(run: Path) -> None:
    for arguments, told in (
        (("predict", "run", "input.txt", "--sample", "--beam", "2"), "Give one of them"),
        (("predict", "run", "input.txt", "--int8"), "cannot be decoded in int8"),
        (("predict", "run", "input.txt", "--sample", "--temperature", "0"), "temperature"),
        (("predict", "run", "input.txt", "--dictionary", "no.tsv"), "no.tsv: no such file"),
        (("score", "run", "broken.tsv"), "broken.tsv"),
    ):
        (run / "broken.tsv").write_text("one\n", encoding="utf-8")
        said = regard(*arguments, cwd=run)
        assert said.returncode == 2, arguments
        assert told in said.stderr
        assert "Traceback" not in said.stderr


def test_unknown_words_are_taken_from_the_source(run: Path) -> None:
    """The model knows no word of these, so whatever unknown it says is one of them."""
    (run / "names.txt").write_text("Ravel Satie\n", encoding="utf-8")
    (run / "words.tsv").write_text("Ravel\tMaurice\nSatie\tErik\n", encoding="utf-8")
    for more in ([], ["--dictionary", "words.tsv"]):
        said = regard("predict", "run", "names.txt", "--replace-unknown", *more, cwd=run)
        assert said.returncode == 0, said.stderr


def test_links_are_lines_and_gold_is_scored(run: Path) -> None:
    (run / "given.tsv").write_text("one two three\t1 2 3\nfour zero\t4 0\n", "utf-8")
    said = alone("align", "run", "given.tsv", cwd=run)
    assert said.returncode == 0, said.stderr
    assert len(said.stdout.splitlines()) == 2
    (run / "gold.txt").write_text(said.stdout, encoding="utf-8")
    scored = regard("align", "run", "given.tsv", "--gold", "gold.txt", "--json", cwd=run)
    values = {score["name"]: score["value"] for score in json.loads(scored.stdout)}
    assert values == {"precision": 1.0, "recall": 1.0, "AER": 0.0}
    told = regard("align", "run", "given.tsv", "--json", cwd=run).stdout.splitlines()
    assert [json.loads(line)["line"] for line in told] == [1, 2]


@pytest.mark.parametrize(
    ("gold", "told"),
    [("0-0\n", "1 pairs, but there are 2"), ("0-0\n5-0\n", "line 2"), ("0-0\nx\n", "'x'")],
)
def test_gold_that_does_not_fit_is_one_line(run: Path, gold: str, told: str) -> None:
    (run / "given.tsv").write_text("one two three\t1 2 3\nfour zero\t4 0\n", "utf-8")
    (run / "bad.txt").write_text(gold, encoding="utf-8")
    said = regard("align", "run", "given.tsv", "--gold", "bad.txt", cwd=run)
    assert (said.returncode, said.stdout) == (2, "")
    assert told in said.stderr.splitlines()[-1]


def test_what_was_read_is_shown(run: Path) -> None:
    here = alone("show", "run", "one two three", "1 2 3", cwd=run)
    assert here.returncode == 0, here.stderr
    assert "forced to the given target" in here.stdout
    assert [line[0] for line in here.stdout.splitlines()[3:6]] == ["1", "2", "3"]
    assert "own answer" in regard("show", "run", "one two three", cwd=run).stdout
    for name, begins in (
        ("a.png", b"\x89PNG"),
        ("a.svg", b"<?xml"),
        ("a.html", b"<!doctype html>"),
    ):
        said = regard("show", "run", "one two three", "1 2 3", "-o", name, cwd=run)
        assert said.returncode == 0, said.stderr
        assert (run / name).read_bytes().startswith(begins)
    said = regard("show", "run", "one", "-o", "a.gif", cwd=run)
    assert said.returncode == 2
    assert ".svg" in said.stderr


def test_a_card_tells_what_was_learned_from(run: Path) -> None:
    card = (run / "run" / "card.md").read_text(encoding="utf-8")
    for part in ("kind `bahdanau`", "finished at step 12", "pairs.tsv", "| bleu |", "| torch |"):
        assert part in card


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
    assert alone("check", "translate", "--data", "pairs.tsv", cwd=run).returncode == 0
    broken = "\n".join(["one\t1", "two", "\t3", "four\t4"]) + "\n"
    (run / "broken.tsv").write_text(broken, encoding="utf-8")
    said = regard("check", "translate", "--data", "broken.tsv", cwd=run)
    assert said.returncode == 1
    for line in (2, 3):
        assert f"broken.tsv, line {line}" in said.stdout


def test_check_tells_what_validation_has_and_training_lacks(run: Path) -> None:
    (run / "valid.tsv").write_text("one ß\t1\none two\t€\n", encoding="utf-8")
    both = ("--data", "pairs.tsv", "--valid", "valid.tsv")
    said = regard("check", "translate", *both, cwd=run)
    assert said.returncode == 0
    assert "U+00DF" in said.stdout
    assert "U+20AC" in said.stdout


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


def test_ctrl_c_saves_and_the_same_command_resumes(run: Path, tmp_path: Path) -> None:
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
    assert "run the same command to resume" in said
    saved = sorted((tmp_path / "checkpoints").iterdir())[-1].name
    assert int(saved.removeprefix("step-")) > 0
