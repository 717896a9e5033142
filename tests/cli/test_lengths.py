"""Maximum lengths by the command line: truncated and skipped lines are noted."""

import json
from pathlib import Path

import pytest

from regard.tasks.run import train
from tests.cli.commands import CommandResult, regard
from tests.tasks.translate.small import configured, write_pairs

LONG, SHORT = " ".join(["one two three"] * 4000), "one two"
NOTED = "the source has 12000 tokens, more than 7"
BOUND = ("--max-source-length", "7", "--max-length", "5")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, a file of texts and one of pairs, in both of which the second line is too long."""
    folder = tmp_path_factory.mktemp("lengths")
    train(folder / "run", configured(write_pairs(folder / "pairs.tsv"), training__steps=3))
    (folder / "input.txt").write_text(f"{SHORT}\n{LONG}\n{SHORT}\n", "utf-8")
    lines = [f"{source}\t{target}\n" for source, target in ((SHORT, "1 2"), (LONG, "1 2"))]
    (folder / "given.tsv").write_text("".join([*lines, lines[0]]), "utf-8")
    return folder


ASKED: dict[str, tuple[str, ...]] = {
    "predict": ("predict", "run", "input.txt"),
    "links": ("predict", "run", "input.txt", "--alignments", "links.txt"),
    "evaluate": ("evaluate", "run", "given.tsv", "--json"),
    "score": ("score", "run", "given.tsv"),
    "align": ("align", "run", "given.tsv"),
    "both ways": ("align", "run", "given.tsv", "--reverse", "run"),
    "show": ("show", "run", LONG, "1 2"),
    "its own answer": ("show", "run", LONG, "--json"),
}


def noted(said: CommandResult) -> list[str]:
    return [line for line in said.stderr.splitlines() if line.startswith("note: ")]


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_a_truncated_line_is_noted_once(folder: Path, asked: tuple[str, ...]) -> None:
    said = regard(*asked, *BOUND, cwd=folder)
    assert said.returncode == 0, said.stderr
    assert sum(NOTED in line for line in noted(said)) == 1, said.stderr
    if asked[0] in ("predict", "score", "align"):
        lines = said.stdout.split("\n")
        assert len(lines) == 4
        assert lines[0] == lines[2]


@pytest.mark.parametrize("verb", ["predict", "evaluate", "score", "align", "show"])
def test_every_verb_can_stop_or_choose(folder: Path, verb: str) -> None:
    asked = ASKED[verb]
    said = regard(*asked, *BOUND, "--too-long", "error", cwd=folder)
    assert said.returncode == 2
    assert "12000 tokens, but max_source_length is 7" in said.stderr.splitlines()[-1]
    said = regard(*asked, *BOUND, "--too-long", "shorten", cwd=folder)
    assert (said.returncode, said.stdout) == (2, "")
    assert said.stderr == "regard: --too-long shorten: choose truncate, skip, error.\n"


def test_a_skipped_line_has_no_answer(folder: Path) -> None:
    for verb, empty in (("predict", ""), ("score", "nan"), ("align", "")):
        said = regard(*ASKED[verb], *BOUND, "--too-long", "skip", cwd=folder)
        assert said.returncode == 0, said.stderr
        assert said.stdout.split("\n")[1] == empty
        assert "line 2" in said.stderr
    told = regard(*ASKED["score"], *BOUND, "--too-long", "skip", "--json", cwd=folder).stdout
    assert [json.loads(line)["log_prob"] is None for line in told.splitlines()] == [0, 1, 0]


def test_json_of_links_has_as_many_words_as_weights(folder: Path) -> None:
    said = regard(*ASKED["align"], *BOUND, "--json", cwd=folder)
    for line in said.stdout.splitlines():
        told = json.loads(line)
        assert len(told["weights"]) == len(told["target"])
        assert {len(row) for row in told["weights"]} == {len(told["source"])}


def test_gold_may_speak_of_words_that_were_not_read(folder: Path) -> None:
    (folder / "gold.txt").write_text("0-0\n0-0 9000-1\n0-0\n", "utf-8")
    said = regard(*ASKED["align"], *BOUND, "--gold", "gold.txt", "--json", cwd=folder)
    assert said.returncode == 0, said.stderr
    assert {score["name"] for score in json.loads(said.stdout)} == {"precision", "recall", "AER"}


def test_many_notes_are_summed_up(folder: Path) -> None:
    (folder / "many.txt").write_text(f"{'one ' * 9}\n" * 13, "utf-8")
    said = regard("predict", "run", "many.txt", *BOUND, cwd=folder)
    assert len(said.stdout.splitlines()) == 13
    assert len(noted(said)) == 11
    assert noted(said)[-1] == "note: 3 more lines were too long."


HUGE = "99999999999999999999"
REFUSED = [
    (("--beam", HUGE), f"--beam is {HUGE}. Give a whole number from 1 to 1000."),
    (("--beam", "0"), "--beam is 0. Give a whole number from 1 to 1000."),
    (("--beam", "-3"), "--beam is -3. Give a whole number from 1 to 1000."),
    (("--best", HUGE), f"--best is {HUGE}. Give a whole number from 1 to 1000."),
    (("--seed", HUGE), f"--seed is {HUGE}. Give a whole number from 0 to 9223372036854775807."),
    (("--seed", "-1"), "--seed is -1. Give a whole number from 0 to 9223372036854775807."),
    (("--temperature", "nan"), "--temperature is nan. Give a finite number greater than 0."),
    (("--temperature", "inf"), "--temperature is inf. Give a finite number greater than 0."),
    (("--temperature", "0"), "--temperature is 0.0. Give a finite number greater than 0."),
    (("--top-p", "2"), "--top-p is 2.0. Give a number above 0, and 1 at most."),
    (("--top-p", "nan"), "--top-p is nan. Give a number above 0, and 1 at most."),
    (("--max-length", "0"), "--max-length is 0. Give a whole number from 1 to 1000000."),
    (
        ("--max-source-length", HUGE),
        f"--max-source-length is {HUGE}. Give a whole number from 1 to 1000000.",
    ),
]


@pytest.mark.parametrize(("option", "told"), REFUSED, ids=str)
def test_a_number_out_of_range_is_one_line(
    folder: Path, option: tuple[str, ...], told: str
) -> None:
    said = regard("predict", "run", "input.txt", *option, cwd=folder)
    assert (said.returncode, said.stdout, said.stderr) == (2, "", f"regard: {told}\n")


def test_shares_are_from_0_to_1(folder: Path) -> None:
    needed = "Give a number from 0 to 1.\n"
    for asked, option in (("align", "--threshold"), ("align", "--null"), ("show", "--threshold")):
        for given, shown in (("nan", "nan"), ("-1", "-1.0"), ("2", "2.0")):
            said = regard(*ASKED[asked], option, given, cwd=folder)
            assert said.returncode == 2
            assert said.stderr == f"regard: {option} is {shown}. {needed}"


def test_more_answers_than_there_are_words(folder: Path) -> None:
    (folder / "one.txt").write_text(f"{SHORT}\n", "utf-8")
    said = regard("predict", "run", "one.txt", "--best", "300", *BOUND, cwd=folder)
    assert said.returncode == 0, said.stderr
    answers = json.loads(said.stdout)["answers"]
    assert len({answer["text"] for answer in answers}) > 20
