"""Alignments by the command line: of answers, as JSON, streamed, and errors for invalid input."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from regard.tasks.run import train
from tests.cli.commands import ENVIRONMENT, regard
from tests.tasks.translate.small import configured, write_pairs

GIVEN = "one two three\t1 2 3\nfour zero\t4 0\n"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of words, one of characters and one without attention; some files beside them."""
    folder = tmp_path_factory.mktemp("links")
    pairs = write_pairs(folder / "pairs.tsv")
    train(folder / "run", configured(pairs, training__steps=6))
    train(folder / "characters", configured(pairs, training__steps=2, text__kind="characters"))
    plain = {"model__kind": "plain", "model__embedding": 5, "model__state_size": 7}
    train(folder / "plain", configured(pairs, training__steps=1, **plain))
    (folder / "given.tsv").write_text(GIVEN, encoding="utf-8")
    (folder / "input.txt").write_text("one two\n\nthree four zero\n", encoding="utf-8")
    return folder


def test_answers_have_their_links_by_line(run: Path) -> None:
    said = regard("predict", "run", "input.txt", "--alignments", "links.txt", cwd=run)
    assert said.returncode == 0, said.stderr
    rows = [line.split("\t") for line in (run / "links.txt").read_text("utf-8").splitlines()]
    assert [number for number, _ in rows] == ["1", "2", "3"]
    assert rows[1][1] == ""
    answers, sources = said.stdout.split("\n"), ["one two", "", "three four zero"]
    for (_, links), answer, source in zip(rows, answers, sources, strict=False):
        for link in links.split():
            left, right = link.split("-")
            assert int(left) < len(source.split())
            assert int(right) < len(answer.split())


def test_each_of_several_answers_has_a_line(run: Path) -> None:
    more = ("--best", "2", "--beam", "3", "--alignments", "best.txt", "--ensemble", "run")
    assert regard("predict", "run", "input.txt", *more, cwd=run).returncode == 0
    numbers = [line.split("\t")[0] for line in (run / "best.txt").read_text("utf-8").splitlines()]
    assert numbers == ["1", "1", "2", "3", "3"]


def test_links_of_a_failed_command_are_not_taken_for_whole(run: Path) -> None:
    (run / "old.txt").write_text("kept\n", encoding="utf-8")
    said = regard("predict", "plain", "input.txt", "--alignments", "old.txt", cwd=run)
    assert (said.returncode, said.stdout) == (2, "")
    assert "kind plain has no attention" in said.stderr.splitlines()[-1]
    assert (run / "old.txt").read_text("utf-8") == "kept\n"
    assert not list(run.glob(".*.part"))
    nowhere = regard("predict", "run", "input.txt", "--alignments", "no/where.txt", cwd=run)
    assert nowhere.returncode == 2
    assert "no/where.txt cannot be written" in nowhere.stderr.splitlines()[-1]


def test_json_tells_words_links_and_weights_and_is_gold_itself(run: Path) -> None:
    said = regard("align", "run", "given.tsv", "--json", cwd=run)
    told = [json.loads(line) for line in said.stdout.splitlines()]
    assert [each["line"] for each in told] == [1, 2]
    assert told[0]["source"] == ["one", "two", "three"]
    assert told[1]["target"] == ["4", "0"]
    assert [len(row) for row in told[1]["weights"]] == [2, 2]
    (run / "gold.jsonl").write_text(said.stdout, encoding="utf-8")
    scored = regard("align", "run", "given.tsv", "--gold", "gold.jsonl", "--json", cwd=run)
    assert json.loads(scored.stdout)[-1]["value"] == 0.0


RECORD = '{"links": [[0, 0]], "source": ["four", "zero"], "target": ["4", "0"]}\n'
BROKEN = {
    "out of range": ("run", "0-0\n0-2\n", "bad.gold, line 2: the link 0-2"),
    "counts": ("run", "0-0\n", "links of 1 pairs, but there are 2"),
    "no attention": ("plain", "0-0\n0-0\n", "kind plain has no attention"),
    "other words": ("run", RECORD * 2, "line 1: the gold's source has 2 words"),
    "another word": ("run", RECORD.replace('["four", "zero"]', '["one", "2", "three"]') * 2, "'2'"),
}


@pytest.mark.parametrize(("name", "gold", "told"), BROKEN.values(), ids=list(BROKEN))
def test_what_does_not_fit_is_one_line(run: Path, name: str, gold: str, told: str) -> None:
    (run / "bad.gold").write_text(gold, encoding="utf-8")
    said = regard("align", name, "given.tsv", "--gold", "bad.gold", cwd=run)
    assert (said.returncode, said.stdout) == (2, "")
    last = said.stderr.splitlines()[-1]
    assert last.startswith("regard: ")
    assert told in last


def test_a_target_that_cannot_be_spelt_is_named_with_its_place(run: Path) -> None:
    (run / "euro.tsv").write_text("one\t1\ntwo\t2€\n", encoding="utf-8")
    said = regard("align", "characters", "euro.tsv", cwd=run)
    assert (said.returncode, said.stdout) == (2, "")
    last = said.stderr.splitlines()[-1]
    assert "euro.tsv, line 2: U+20AC EURO SIGN" in last
    # A vocabulary of words has a token for what it does not know.
    assert regard("align", "run", "euro.tsv", cwd=run).returncode == 0


def test_guided_training_by_the_command(run: Path) -> None:
    (run / "pairs.links").write_text("0-0\n" * 119 + "0-9\n", encoding="utf-8")
    common = ("translate", "--data", "pairs.tsv", "--links", "pairs.links")
    said = regard("train", *common, "--out", "guided", cwd=run)
    assert said.returncode == 2
    assert "pairs.links, line 120: the link 0-9" in said.stderr
    checked = regard("check", *common, cwd=run)
    assert checked.returncode == 1
    assert "pairs.links, line 120" in checked.stdout


def test_nobody_reads_on_and_it_is_quiet(run: Path) -> None:
    (run / "many.tsv").write_text(GIVEN * 3000, encoding="utf-8")
    command = [sys.executable, "-m", "regard", "align", "run", "many.tsv"]
    read, write = os.pipe()
    process = subprocess.Popen(
        command, env=ENVIRONMENT, cwd=run, stdout=write, stderr=subprocess.PIPE, text=True
    )
    os.close(write)
    with os.fdopen(read) as answers:
        assert answers.readline().strip()
    _, said = process.communicate(timeout=120)
    assert "Traceback" not in said
    assert "Error" not in said
