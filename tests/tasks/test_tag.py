"""Tagging through every verb: trained, resumed, asked, evaluated, checked and shown."""

import json
from pathlib import Path

import pytest

from regard.seq2seq.data import LabelledWords
from regard.tasks.config import ConfigSource, load
from regard.tasks.config.tag import TagConfig
from regard.tasks.run import load as load_run
from regard.tasks.run import train
from regard.tasks.tag import TASK, TagCodec
from tests.cli.commands import regard

NOUNS, VERBS = ["dog", "cat", "sun", "man"], ["sees", "eats", "runs"]
SETTINGS = {
    "data": {"valid_share": 0.2},
    "model": {
        "embedding": 11, "character_embedding": 5, "character_size": 7, "hidden_size": 6,
        "heads": 2, "min_count": 1, "dropout": 0.1,
    },
    "training": {
        "steps": 40, "batch": {"kind": "sentences", "size": 8}, "rate": 0.03, "warmup": 3,
        "save_every": 7, "validate_every": 20, "ema": 0.8, "threads": 1, "device": "cpu",
    },
}  # fmt: skip


def write_sentences(path: Path, entities: bool = False) -> Path:
    """the dog sees a cat: a word's label follows from the word."""
    lines = []
    for number in range(60):
        noun, verb, other = NOUNS[number % 4], VERBS[number // 4 % 3], NOUNS[number // 12 % 4]
        rows = [("the", "DET"), (noun, "NOUN"), (verb, "VERB"), ("a", "DET"), (other, "NOUN")]
        if entities:
            rows = [(word, "B-ANIMAL" if word in ("dog", "cat") else "O") for word, _ in rows]
        lines.append("".join(f"{word}\t{label}\n" for word, label in rows) + "\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


def configured(data: Path, **training: object) -> TagConfig:
    given = {"data": {"train": [str(data)]}, "training": training}
    sources = [ConfigSource("the test", SETTINGS), ConfigSource("the test", given)]
    return load(TagConfig, overrides=sources)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tag")
    train(folder / "run", configured(write_sentences(folder / "train.conll")))
    train(folder / "ner", configured(write_sentences(folder / "ner.conll", entities=True)))
    return folder


def test_it_learns_and_answers_line_by_line(folder: Path) -> None:
    (folder / "input.txt").write_text("the sun runs a dog\n\na cat sees\n", encoding="utf-8")
    said = regard("predict", "run", "input.txt", "--format", "inline", cwd=folder)
    assert said.stdout.splitlines() == [
        "the/DET sun/NOUN runs/VERB a/DET dog/NOUN", "", "a/DET cat/NOUN sees/VERB"
    ]  # fmt: skip
    columns = regard("predict", "run", "input.txt", cwd=folder).stdout
    assert columns.startswith("the\tDET\nsun\tNOUN\n")
    first = json.loads(
        regard("predict", "run", "input.txt", "--format", "json", cwd=folder).stdout.split("\n")[0]
    )
    assert first == {
        "words": ["the", "sun", "runs", "a", "dog"],
        "labels": ["DET", "NOUN", "VERB", "DET", "NOUN"],
    }
    assert load_run(folder / "run").predict(["the dog"])[0].target == ["DET", "NOUN"]


def test_what_it_predicts_in_columns_is_what_it_reads(folder: Path) -> None:
    predicted = regard("predict", "run", "train.conll", cwd=folder).stdout
    assert predicted == (folder / "train.conll").read_text("utf-8")


def test_metrics_follow_the_labels(folder: Path) -> None:
    for run, data, names in (
        ("run", "train.conll", ["accuracy"]),
        ("ner", "ner.conll", ["F1", "accuracy"]),
    ):
        found = json.loads(regard("evaluate", run, data, "--json", cwd=folder).stdout)
        assert [score["name"] for score in found] == names
        assert all(score["value"] == 100.0 for score in found)


def test_a_resumed_run_is_bit_identical(folder: Path, tmp_path: Path) -> None:
    data = folder / "train.conll"
    train(tmp_path / "once", configured(data, steps=17))
    for steps in (5, 6, 13, 17):
        train(tmp_path / "resumed", configured(data, steps=steps, decay="none"))
    train(tmp_path / "constant", configured(data, steps=17, decay="none"))
    for name in ("model.safetensors", "optimiser.safetensors", "average.safetensors"):
        path = Path("checkpoints", "step-00000017", name)
        wanted = (tmp_path / "constant" / path).read_bytes()
        assert (tmp_path / "resumed" / path).read_bytes() == wanted
        assert (tmp_path / "once" / path).read_bytes() != wanted  # another schedule


def test_its_map_has_a_row_and_a_column_for_each_word(folder: Path) -> None:
    found = json.loads(regard("show", "run", "the cat runs", "--json", cwd=folder).stdout)
    assert found["source"] == ["the", "cat", "runs"]
    assert found["target"] == ["the/DET", "cat/NOUN", "runs/VERB"]
    for row in found["maps"][0]["weights"]:
        assert sum(row) == pytest.approx(1.0, abs=2e-4)
    heads = json.loads(
        regard("show", "run", "the cat", "DET VERB", "--view", "heads", "--json", cwd=folder).stdout
    )
    assert [each["name"] for each in heads["maps"]] == [
        "self-attention/head.0", "self-attention/head.1"
    ]  # fmt: skip
    assert heads["target"] == ["the/DET", "cat/VERB"]
    assert regard("show", "run", "the cat", "-o", "map.png", cwd=folder).returncode == 0
    assert (folder / "map.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("predict", "run", "train.conll", "--beam", "2"), "tag does not search"),
        (("predict", "run", "train.conll", "--max-length", "2"), "tag does not bound lengths"),
        (("predict", "run", "train.conll", "--ensemble", "ner"), "tag does not make ensembles"),
        (("predict", "run", "train.conll", "--format", "xml"), "columns, inline or json"),
        (("align", "run", "train.conll"), "tag does not align pairs"),
        (("score", "run", "train.conll"), "tag does not score given targets"),
        (("show", "run", "the cat", "DET"), "2 words have 1 labels"),
        (("show", "run", "the cat", "--layer", "decoder.1"), "Leave --units and --layer out"),
        (("show", "run", " "), "the text is empty"),
        (("show", "run", "the cat", "--check"), "tag does not measure faithfulness"),
        (("train", "tag", "--data", "train.conll", "--out", "x", "--set", "model.heads=7"),
         "does not divide 2 · hidden_size"),
        (("train", "tag", "--data", "train.conll", "--links", "train.conll", "--out", "x"),
         "data has no links"),
    ],
)  # fmt: skip
def test_what_it_cannot_do_is_one_line(
    folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    said = regard(*arguments, cwd=folder)
    assert said.returncode == 2
    assert message in said.stderr.splitlines()[-1]
    assert "Traceback" not in said.stderr


def test_check_names_faults_and_unseen_labels(folder: Path) -> None:
    (folder / "bad.conll").write_text("a\tX\nb\n\nthe\tDET\n", encoding="utf-8")
    said = regard("check", "tag", "--data", "train.conll", "--valid", "bad.conll", cwd=folder)
    assert said.returncode == 1
    assert "error: bad.conll, line 2: has 1 columns, not 2" in said.stdout
    (folder / "odd.conll").write_text("the\tDET\ncat\tADJ\n", encoding="utf-8")
    said = regard("check", "tag", "--data", "train.conll", "--valid", "odd.conll", cwd=folder)
    assert said.returncode == 0
    assert "the label 'ADJ' is not in the training set" in said.stdout
    both = ("train", "tag", "--data", "bad.conll", "--out", "skipped", "--on-bad-input")
    assert regard(*both, "error", cwd=folder).returncode == 2
    assert not (folder / "skipped").exists()


def test_labels_that_were_never_seen_are_not_trained_on(folder: Path) -> None:
    run = load_run(folder / "run")
    batch = run.codec.collate([0], [LabelledWords(("the", "cat"), ("DET", "ADJ"), 1)])
    assert batch.labels.tolist()[0][1] == -1
    assert batch.counts() == {"tokens": 1, "sentences": 1}


def test_a_codec_reads_long_words_and_empty_sentences(folder: Path) -> None:
    codec: TagCodec = TASK.codec(TagConfig(), load_run(folder / "run").codec.kept)
    batch = codec.collate([0, 1], [LabelledWords(("x" * 99,), None, 1), LabelledWords((), None, 2)])
    assert batch.characters.shape == (2, 1, 30)
    assert batch.words.lengths.tolist() == [1, 0]
