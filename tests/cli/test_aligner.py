"""An aligner by the command line: train, resume, align, show, and errors for invalid input."""

import json
from pathlib import Path

import pytest

from regard.tasks.run import train
from tests.cli.commands import alone, regard
from tests.tasks.translate.small import configured, write_pairs

SET = (
    "--set", "model.size=24", "--set", "model.spelling=32", "--set", "training.steps=60",
    "--set", "training.rate=0.03", "--set", "training.warmup=5", "--set", "training.save_every=20",
    "--set", "training.validate_every=30", "--set", "training.threads=1",
    "--set", 'training.batch={kind="sentences",size=40}',
)  # fmt: skip
GIVEN = "One two three\t1 2 3\nfour zero\t4 0\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An aligner of number words and digits, a translator, and some files beside them."""
    folder = tmp_path_factory.mktemp("aligner")
    pairs = write_pairs(folder / "pairs.tsv")
    said = alone("train", "align", "--data", "pairs.tsv", "--out", "run", *SET, cwd=folder)
    assert said.returncode == 0, said.stderr
    assert "regard align run pairs.tsv" in said.stderr.splitlines()[-1]
    train(folder / "translator", configured(pairs, training__steps=1))
    (folder / "given.tsv").write_text(GIVEN, encoding="utf-8")
    (folder / "gold.txt").write_text("0-0 1-1 2-2\n0-0 1-1\n", encoding="utf-8")
    return folder


def test_it_links_what_belongs_together(folder: Path) -> None:
    said = alone("align", "run", "given.tsv", cwd=folder)
    assert (said.returncode, said.stdout) == (0, "0-0 1-1 2-2\n0-0 1-1\n"), said.stderr


@pytest.mark.parametrize("rule", ["forward", "backward", "intersection", "product"])
def test_gold_is_scored_by_any_rule(folder: Path, rule: str) -> None:
    more = ("--gold", "gold.txt", "--symmetrize", rule, "--json")
    said = regard("align", "run", "given.tsv", *more, cwd=folder)
    scores = {score["name"]: score["value"] for score in json.loads(said.stdout)}
    assert scores["AER"] == 0.0


def test_the_same_again_says_that_it_is_done(folder: Path) -> None:
    before = sorted((folder / "run" / "checkpoints").iterdir())
    said = regard("train", "align", "--data", "pairs.tsv", "--out", "run", *SET, cwd=folder)
    assert said.returncode == 0
    assert "already finished at step 60" in said.stderr
    assert sorted((folder / "run" / "checkpoints").iterdir()) == before


def test_a_card_says_what_it_is(folder: Path) -> None:
    card = (folder / "run" / "card.md").read_text("utf-8")
    assert card.startswith("# run\n\nA word aligner over `bare` tokens with")
    assert "| agreement |" in card


def test_it_is_drawn(folder: Path) -> None:
    said = regard("show", "run", "one two", "1 2", "--json", cwd=folder)
    found = json.loads(said.stdout)
    assert (found["source"], found["target"]) == (["one", "two", ""], ["1", "2"])
    (weights,) = (reading["weights"] for reading in found["maps"])
    assert weights[0][0] > 0.5
    assert weights[1][1] > 0.5
    by_characters = regard("show", "run", "one two", "1 2", "--units", "char", cwd=folder)
    assert "one two∎" in by_characters.stdout  # a space is not the end
    drawn = regard("show", "run", "one two", "1 2", "-o", "page.html", cwd=folder)
    assert drawn.returncode == 0, drawn.stderr
    assert "target → source" in json.loads(
        (folder / "page.html").read_text("utf-8").split('id="data">')[1].split("</script>")[0]
    )["maps"][2]["name"]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("predict", "run", "given.tsv", "--beam", "2"),
         "align does not search, so there is no --beam"),
        (("predict", "run", "given.tsv", "--format", "xml"), "--format xml: align writes text"),
        (("evaluate", "run", "given.tsv", "--int8"), "align does not quantize"),
        (("predict", "run", "given.tsv", "--ensemble", "run"), "align does not make ensembles"),
        (("score", "run", "given.tsv"), "align does not score given targets"),
        (("align", "run", "given.tsv", "--reverse", "run"), "an aligner has both directions"),
        (("align", "run", "given.tsv", "--layer", "decoder.1"), "an aligner has no layers"),
        (("align", "run", "given.tsv", "--symmetrize", "best"), "symmetrisation is 'best'"),
        (("align", "run", "no.tsv"), "no such file"),
        (("align", "translator", "given.tsv", "--reverse", "run"), "this run does not translate"),
        (("show", "run", "one two"), "Give one, after the source"),
        (("show", "run", "one two", "1 2", "--check"), "align does not measure faithfulness"),
        (("train", "align", "--data", "pairs.tsv", "--links", "gold.txt", "--out", "x"),
         "data has no links"),
        (("train", "align", "--data", "pairs.tsv", "--out", "x", "--set", "model.heads=2"),
         "model has no heads"),
        (("train", "align", "--data", "pairs.tsv", "--out", "translator"),
         "was trained to translate"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_reported_in_one_line(
    folder: Path, arguments: tuple[str, ...], told: str
) -> None:
    said = regard(*arguments, cwd=folder)
    assert said.returncode == 2
    assert told in said.stderr.splitlines()[-1]
    assert "Traceback" not in said.stderr


def test_a_line_that_is_too_long_is_truncated_or_skipped(folder: Path) -> None:
    long = "\t".join((" ".join(["one"] * 9000), " ".join(["1"] * 9000)))
    (folder / "long.tsv").write_text(f"one two\t1 2\n{long}\none two\t1 2\n", encoding="utf-8")
    asked = ("align", "run", "long.tsv", "--max-source-length", "5", "--max-length", "3")
    said = regard(*asked, "--json", cwd=folder)
    assert said.returncode == 0, said.stderr
    read = [json.loads(line) for line in said.stdout.splitlines()]
    assert [(len(each["source"]), len(each["target"])) for each in read] == [(2, 2), (5, 3), (2, 2)]
    assert said.stderr.count("line 2: the source has 9000 tokens, more than 5") == 1
    assert said.stderr.count("line 2: the target has 9000 tokens, more than 3") == 1
    skipped = regard(*asked, "--too-long", "skip", cwd=folder).stdout.split("\n")
    assert skipped[1] == ""
    assert skipped[0] == skipped[2] == "0-0 1-1"
    shown = regard("show", "run", *long.split("\t"), "--max-length", "4", "--json", cwd=folder)
    assert shown.returncode == 0, shown.stderr
    assert len(json.loads(shown.stdout)["target"]) == 4
    asked = ("show", "run", *long.split("\t"), "--too-long", "skip")
    assert "Give a shorter one" in regard(*asked, cwd=folder).stderr


def test_an_aligner_predicts_links_and_is_evaluated_by_agreement(folder: Path) -> None:
    links = regard("predict", "run", "given.tsv", cwd=folder)
    assert links.stdout == regard("align", "run", "given.tsv", cwd=folder).stdout
    (agreement, perplexity) = json.loads(
        regard("evaluate", "run", "given.tsv", "--json", cwd=folder).stdout
    )
    assert agreement["name"] == "agreement"
    assert 0 <= agreement["value"] <= 100
    assert perplexity["value"] >= 1
