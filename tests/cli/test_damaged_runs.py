"""A run's folder that is not what was written: an answer as before, or one line and exit code 2."""

import hashlib
import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import safetensors.torch
import torch
import torch._dynamo  # torch imports it at the first update, and changes os.environ

from tests.cli.commands import CommandResult, regard
from tests.cli.test_verbs import settings
from tests.tasks.translate.small import write_pairs

DEEP = 200_000


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damaged")
    write_pairs(folder / "pairs.tsv")
    (folder / "input.txt").write_text("one two\n\nthree four zero\n", encoding="utf-8")
    said = train(folder)
    assert said.returncode == 0, said.stderr
    return folder


@pytest.fixture
def folder(trained: Path, tmp_path: Path) -> Path:
    return shutil.copytree(trained, tmp_path / "copy")


def train(folder: Path, *more: str) -> CommandResult:
    return regard(
        "train", "translate", "--data", "pairs.tsv", "--out", "run", *settings(), *more, cwd=folder
    )


def predict(folder: Path, *more: str) -> CommandResult:
    return regard("predict", "run", "input.txt", *more, cwd=folder)


@contextmanager
def within(seconds: float) -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError("it hangs")

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def refused(said: CommandResult, told: str) -> None:
    """One line, which says it, and exit code 2."""
    assert said.returncode == 2, said.stderr
    assert said.stdout == ""
    (line,) = said.stderr.splitlines()
    assert line.startswith("regard: ")
    assert re.search(told, line), line


def last_checkpoint(folder: Path) -> Path:
    return max((folder / "run" / "checkpoints").iterdir())


def every_checkpoint(folder: Path) -> list[Path]:
    return sorted((folder / "run" / "checkpoints").iterdir())


def rewrite(checkpoint: Path, name: str, content: bytes) -> None:
    """Put another file into a checkpoint, with its hash in the manifest."""
    (checkpoint / name).write_bytes(content)
    manifest = json.loads((checkpoint / "manifest.json").read_bytes())
    entry = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    manifest["files"][name] = entry
    (checkpoint / "manifest.json").write_text(json.dumps(manifest))


def edited(path: Path, change: Callable[[str], str]) -> None:
    before = path.read_text("utf-8")
    assert change(before) != before
    path.write_text(change(before), "utf-8")


# Tokenizers belong to their weights.


def reverse(folder: Path, name: str) -> None:
    path = folder / "run" / name
    described = json.loads(path.read_text("utf-8"))
    described["pieces"].reverse()
    path.write_text(json.dumps(described), "utf-8")


@pytest.mark.parametrize("name", ["source.json", "target.json"])
def test_another_tokenizer_is_refused(folder: Path, name: str) -> None:
    reverse(folder, name)
    told = rf"{name} is not the file that .*step-\d+ was trained with"
    refused(predict(folder), told)
    refused(regard("evaluate", "run", "pairs.tsv", cwd=folder), told)
    refused(regard("score", "run", "pairs.tsv", cwd=folder), told)
    refused(regard("align", "run", "pairs.tsv", cwd=folder), told)
    refused(regard("show", "run", "one two", cwd=folder), told)
    said = train(folder, "--set", "training.steps=13")
    assert said.returncode == 2
    assert f"the data '{name}' has changed since this run started" in said.stderr


def test_swapped_tokenizers_are_refused(folder: Path) -> None:
    run = folder / "run"
    (run / "source.json").rename(run / "other.json")
    (run / "target.json").rename(run / "source.json")
    (run / "other.json").rename(run / "target.json")
    refused(predict(folder), r"source\.json is not the file")


@pytest.mark.parametrize("sign", ["\n", "\r", "\x0b", "\x0c", "\x1b", "\x85", "\u2028", "\ud800"])
def test_a_tokenizer_with_control_characters_is_refused(folder: Path, sign: str) -> None:
    """Even if the checkpoint claims it: an answer would not be one line."""
    path = folder / "run" / "target.json"
    described = json.loads(path.read_text("utf-8"))
    described["pieces"][0] = f"a{sign}b"
    path.write_text(json.dumps(described), "utf-8")
    for checkpoint in every_checkpoint(folder):
        record = json.loads((checkpoint / "record.json").read_bytes())
        record["identity"]["data"]["target.json"] = hashlib.sha256(path.read_bytes()).hexdigest()
        rewrite(checkpoint, "record.json", json.dumps(record).encode())
    refused(predict(folder), r"target\.json is not a readable tokenizer .* control character")


def test_an_answer_is_one_line_whatever_was_learned(tmp_path: Path) -> None:
    """JSON can write what ends a line, and a line of text may hold what ends one elsewhere."""
    records = [
        {"source": f"one{sign}two", "target": f"1{sign}2{sign}"}
        for sign in ("\n", "\r", "\x0b", "\x0c", "\x85", "\u2028", "\u2029", "\x1e")
        for _ in range(8)
    ]
    lines = "".join(json.dumps({**r, "source": f"{r['source']} {n}"}) + "\n"
                    for n, r in enumerate(records))  # fmt: skip
    (tmp_path / "pairs.jsonl").write_text(lines, "utf-8")
    for kind in ("characters", "words", "bpe"):
        said = regard(
            "train", "translate", "--data", "pairs.jsonl", "--out", kind,
            *settings(text={"kind": kind}), "--set", "training.steps=3", cwd=tmp_path,
        )  # fmt: skip
        assert said.returncode == 0, said.stderr
        asked = ("predict", kind, "pairs.jsonl", "--sample", "--temperature", "9")
        found = regard(*asked, cwd=tmp_path)
        assert found.returncode == 0, found.stderr
        assert len(found.stdout.splitlines()) == len(records)


def test_edits_of_the_configuration(folder: Path) -> None:
    """Settings that the weights depend on are fixed; changed settings of inference are noted."""
    before = predict(folder)
    assert before.returncode == 0, before.stderr
    path = folder / "run" / "run.toml"
    kept = path.read_text("utf-8")
    for old, new, key in (
        ("temperature = 1.0", "temperature = 9.0", r"model\.selection\.temperature"),
        ("dropout = 0.1", "dropout = 0.2", r"model\.dropout"),
        ("seed = 1", "seed = 2", r"training\.seed"),
        ("smoothing = 0.1", "smoothing = 0.3", r"training\.smoothing"),
    ):
        edited(path, lambda text: text.replace(old, new, 1))
        refused(predict(folder), rf"run\.toml: {key} is .*, but .* trained with")
        path.write_text(kept, "utf-8")
    edited(path, lambda text: text.replace("beam = 5", "beam = 1"))
    said = predict(folder)
    assert said.returncode == 0
    assert "decoding.beam is 1 and was 5 when saved" in said.stderr
    path.write_text(kept, "utf-8")
    edited(path, lambda text: text.replace("steps = 12", "steps = 99"))
    assert predict(folder).stdout == before.stdout


def test_a_checkpoint_of_another_run_is_refused(folder: Path, trained: Path) -> None:
    said = regard(
        "train", "translate", "--data", "pairs.tsv", "--out", "other", *settings(),
        "--set", "training.seed=5", cwd=folder,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    name = last_checkpoint(folder).name
    shutil.rmtree(last_checkpoint(folder))
    shutil.copytree(folder / "other" / "checkpoints" / name, folder / "run" / "checkpoints" / name)
    refused(predict(folder), "training.seed is 1, but .* trained with 5")


def test_a_renamed_checkpoint_is_broken(folder: Path) -> None:
    before = predict(folder, "--latest")
    shutil.copytree(every_checkpoint(folder)[0], folder / "run" / "checkpoints" / "step-00000099")
    said = predict(folder, "--latest")
    assert said.stdout == before.stdout
    assert re.search(r"step-00000099 is broken \(record\.json is of step \d+\)", said.stderr)


def test_missing_averaged_weights_are_noted(folder: Path) -> None:
    last = last_checkpoint(folder)
    path = last / "manifest.json"
    manifest = json.loads(path.read_bytes())
    del manifest["files"]["average.safetensors"]
    path.write_text(json.dumps(manifest))
    said = predict(folder, "--latest")
    assert said.returncode == 0, said.stderr
    assert f"{last.name} is broken (manifest.json lacks average.safetensors" in said.stderr


def test_missing_checkpoints_are_noted(folder: Path) -> None:
    assert "log.jsonl" not in predict(folder, "--latest").stderr
    shutil.rmtree(last_checkpoint(folder))
    assert "log.jsonl continues after step 10, which is the last" in predict(folder).stderr
    (folder / "run" / "log.jsonl").unlink()
    assert "log.jsonl is truncated or missing" in predict(folder, "--latest").stderr


# Nothing but our own regular files is opened.


def outside(path: Path) -> None:
    elsewhere = path.with_name(f"outside-{path.name}")
    path.rename(path.parents[1] / elsewhere.name)
    path.symlink_to(path.parents[1] / elsewhere.name)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def gigantic(path: Path) -> None:
    os.truncate(path, 1 << 42)


HARMS = [outside, pipe, device, directory, gigantic]


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("name", ["run.toml", "source.json", "target.json"])
def test_what_is_no_regular_file_is_not_read(
    folder: Path, name: str, harm: Callable[[Path], None]
) -> None:
    harm(folder / "run" / name)
    with within(5):
        for verb in (("predict", "run", "input.txt"), ("show", "run", "one"),
                     ("align", "run", "pairs.tsv")):  # fmt: skip
            refused(regard(*verb, cwd=folder), rf"{name}[: ]")
        said = train(folder, "--set", "training.steps=13")
    assert said.returncode == 2
    assert name in said.stderr.splitlines()[-1]


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize(
    "name", ["manifest.json", "record.json", "model.safetensors", "average.safetensors"]
)
def test_a_checkpoint_of_other_than_regular_files_is_broken(
    folder: Path, name: str, harm: Callable[[Path], None]
) -> None:
    last = last_checkpoint(folder)
    harm(last / name)
    with within(5):
        said = predict(folder, "--latest")
        assert said.returncode == 0, said.stderr
        assert re.search(rf"{last.name} is broken \({name}[: ]", said.stderr)
        again = train(folder)
    assert harm is directory or again.returncode == 0, again.stderr
    if again.returncode:  # a folder is not ours to delete
        assert f"Move {Path('run/checkpoints') / last.name} away" in again.stderr
    assert f"{last.name} is broken ({name}: " in again.stderr


@pytest.mark.parametrize("harm", [outside, pipe, device, directory])
@pytest.mark.parametrize("name", ["log.jsonl", "timings.jsonl", "run.lock"])
def test_what_is_no_regular_file_is_not_written_to(
    folder: Path, name: str, harm: Callable[[Path], None]
) -> None:
    harm(folder / "run" / name)
    elsewhere = folder / f"outside-{name}"
    content = elsewhere.read_bytes() if elsewhere.exists() else b""
    with within(5):
        said = train(folder, "--set", "training.steps=13")
    assert said.returncode == 2, said.stderr
    assert re.search(rf"{name} cannot be .*: it is a ", said.stderr.splitlines()[-1])
    assert not elsewhere.exists() or elsewhere.read_bytes() == content
    assert predict(folder).returncode == 0


@pytest.mark.parametrize("name", ["run.toml", "card.md"])
def test_a_part_that_is_a_link_is_not_written_through(folder: Path, name: str) -> None:
    mine = folder / "mine.txt"
    mine.write_text("mine")
    for part in (f".{name}.part", f".{name}.{os.getpid()}.part"):
        (folder / "run" / part).symlink_to(mine)
    assert train(folder, "--set", "training.steps=13").returncode == 0
    assert mine.read_text() == "mine"


def test_a_link_to_a_run_is_a_run(folder: Path) -> None:
    before = predict(folder)
    (folder / "run").rename(folder / "elsewhere")
    (folder / "run").symlink_to(folder / "elsewhere")
    said = predict(folder)
    assert (said.returncode, said.stdout) == (0, before.stdout)
    assert train(folder, "--set", "training.steps=13").returncode == 0


def test_checkpoints_elsewhere_are_refused(folder: Path) -> None:
    checkpoints = folder / "run" / "checkpoints"
    checkpoints.rename(folder / "elsewhere")
    checkpoints.symlink_to(folder / "elsewhere")
    refused(predict(folder), "checkpoints: it is a symbolic link")
    said = train(folder, "--set", "training.steps=13")
    assert said.returncode == 2
    assert "checkpoints: it is a symbolic link" in said.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "name", ["/dev/zero", "../../../pairs.tsv", "..", "", ".", "manifest.json", "new.safetensors"]
)
def test_a_manifest_names_only_files_of_a_checkpoint(folder: Path, name: str) -> None:
    last = last_checkpoint(folder)
    path = last / "manifest.json"
    manifest = json.loads(path.read_bytes())
    manifest["files"][name] = {"sha256": "0" * 64, "bytes": 1}
    path.write_text(json.dumps(manifest))
    with within(5):
        said = predict(folder, "--latest")
    assert said.returncode == 0, said.stderr
    assert re.search(rf"{last.name} is broken \(manifest.json names {re.escape(repr(name))}",
                     said.stderr)  # fmt: skip


def test_nothing_is_deleted_through_a_link(folder: Path) -> None:
    elsewhere = folder / "elsewhere"
    shutil.copytree(every_checkpoint(folder)[0], elsewhere)
    kept = {path.name: path.read_bytes() for path in elsewhere.iterdir()}
    link = folder / "run" / "checkpoints" / ".step-00000007.part"
    link.symlink_to(elsewhere)
    said = train(folder, "--set", "training.steps=13")
    assert {path.name: path.read_bytes() for path in elsewhere.iterdir()} == kept
    assert said.returncode == 2
    assert re.search(r"\.step-00000007\.part is a symbolic link", said.stderr.splitlines()[-1])
    assert link.is_symlink()


def test_a_linked_checkpoint_is_not_pruned_through(folder: Path) -> None:
    first = every_checkpoint(folder)[0]
    shutil.move(first, folder / "elsewhere")
    first.symlink_to(folder / "elsewhere")
    train(folder, "--set", "training.steps=30", "--set", "training.keep=1")
    assert sorted(os.listdir(folder / "elsewhere")) == sorted(
        ["average.safetensors", "manifest.json", "model.safetensors", "optimiser.safetensors",
         "record.json"]
    )  # fmt: skip


# Whatever a file says, it is the library's own error.


def test_a_checkpoint_of_another_version_is_noted(folder: Path) -> None:
    for checkpoint in every_checkpoint(folder):
        path = checkpoint / "manifest.json"
        edited(path, lambda text: text.replace("regard checkpoint 2", "regard checkpoint 1"))
    refused(predict(folder), "'regard checkpoint 1', .* another version wrote it.* Train again")


@pytest.mark.parametrize("name", ["run.toml", "source.json", "target.json"])
@pytest.mark.parametrize(
    "content",
    [
        "[" * DEEP, '{"a":' * DEEP, "a = " + "[" * DEEP, "a." * DEEP + "a = 1",
        "a = " + "{b = " * 30_000, f"[{'a.' * DEEP}a]", "seed = " + "9" * 5000,
        f"[training]\nseed = 0x{'f' * 20_000}", "[training]\nrate = 0x" + "f" * 20_000,
        "task = " + '"' + "x" * 50_000 + '"', "", "\0", "null", "7", "NaN",
        '{"format": "regard text 1", "kind": "words", "normal": null, "pieces": "abc"}',
        '{"format": "regard text 1", "kind": "words", "normal": null, "pieces": {"a": 1}}',
        '{"format": "regard text 1", "kind": ["words"], "normal": null, "pieces": []}',
        '{"format": "regard text 1", "kind": "words", "pieces": [' + "9" * 5000 + "]}",
    ],
    ids=range(19),
)  # fmt: skip
def test_absurd_files_are_refused(folder: Path, name: str, content: str) -> None:
    (folder / "run" / name).write_text(content, "utf-8")
    with within(10):
        refused(predict(folder), name)
        said = train(folder, "--set", "training.steps=13")
    assert said.returncode == 2, said.stderr
    assert len(said.stderr.splitlines()[-1]) < 2000


@pytest.mark.parametrize(
    "change",
    [
        lambda record: "[" * DEEP,
        lambda record: json.dumps(record | {"step": "12"}),
        lambda record: json.dumps(record | {"step": -1}),
        lambda record: json.dumps(record | {"epoch": 1.5}),
        lambda record: json.dumps(record | {"position": True}),
        lambda record: json.dumps(record | {"best": {"step": 6, "value": float("nan")}}),
        lambda record: json.dumps(record | {"best": {"step": 6, "value": "good"}}),
        lambda record: json.dumps(record | {"best": [6, 1.0]}),
        lambda record: json.dumps(record | {"identity": {}}),
        lambda record: json.dumps(record | {"identity": record["identity"] | {"data": ["a"]}}),
        lambda record: json.dumps(record | {"identity": record["identity"] | {"settings": []}}),
        lambda record: json.dumps(record | {"log": 10**30}),
        lambda record: json.dumps(record | {"new": 1}),
        lambda record: json.dumps(record).replace('"epoch": ', '"epoch": ' + "9" * 5000),
    ],
    ids=range(14),
)  # fmt: skip
def test_an_absurd_record_is_broken(folder: Path, change: Callable[[dict], str]) -> None:
    last = last_checkpoint(folder)
    record = json.loads((last / "record.json").read_bytes())
    rewrite(last, "record.json", change(record).encode())
    for said in (predict(folder, "--latest"), train(folder)):
        assert said.returncode == 0, said.stderr
        assert f"{last.name} is broken (record.json " in said.stderr


def test_a_place_past_an_epoch_is_noted(folder: Path) -> None:
    for checkpoint in every_checkpoint(folder):
        record = json.loads((checkpoint / "record.json").read_bytes())
        rewrite(checkpoint, "record.json", json.dumps(record | {"position": 1000}).encode())
    with within(10):
        said = train(folder, "--set", "training.steps=13")
    assert said.returncode == 2
    assert "epoch" in said.stderr.splitlines()[-1]


def tensors(path: Path) -> dict[str, torch.Tensor]:
    return safetensors.torch.load(path.read_bytes())


@pytest.mark.parametrize("name", ["model.safetensors", "average.safetensors"])
@pytest.mark.parametrize("extra", [True, False])
def test_weights_of_other_names_are_refused(folder: Path, name: str, extra: bool) -> None:
    for checkpoint in every_checkpoint(folder):
        found = tensors(checkpoint / name)
        if extra:
            found["new"] = torch.ones(3)
        else:
            found.popitem()
        rewrite(checkpoint, name, safetensors.torch.save(found))
    refused(predict(folder), f"{name} (has, unlike the model, 'new'|lacks )")


@pytest.mark.parametrize(
    "header",
    [
        {"a": {"dtype": "F32", "shape": [0, 1 << 62], "data_offsets": [0, 0]}},
        {"a": {"dtype": "F32", "shape": [1 << 40, 1 << 40], "data_offsets": [0, 0]}},
        {"a": {"dtype": "F8_E8M0", "shape": [0], "data_offsets": [0, 0]}},
        {"a": {"dtype": "F4", "shape": [0], "data_offsets": [0, 0]}},
        {"a": {"dtype": "F99", "shape": [0], "data_offsets": [0, 0]}},
        {"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 0]}},
        {"__metadata__": 7},
    ],
    ids=range(7),
)
def test_absurd_tensors_are_refused(folder: Path, header: dict[str, object]) -> None:
    told = json.dumps(header).encode()
    told += b" " * (-len(told) % 8)
    for checkpoint in every_checkpoint(folder):
        rewrite(checkpoint, "model.safetensors", len(told).to_bytes(8, "little") + told)
    refused(predict(folder), "model.safetensors")


@pytest.mark.parametrize("line", ["", "{", "[" * DEEP, "null", '{"step": 6}', "\udcff", "7" * 5000])
def test_a_log_that_is_none_is_noted(folder: Path, line: str) -> None:
    path = folder / "run" / "log.jsonl"
    size = path.stat().st_size
    content = (line + "\n").encode("utf-8", "surrogateescape")[:size]
    path.write_bytes((content * (size // len(content) + 1))[:size])
    said = train(folder)
    assert said.returncode == 0, said.stderr
    assert "log.jsonl was changed since the checkpoint" in said.stderr


# Sizes that no machine has room for.


@pytest.mark.parametrize(
    "setting",
    [
        "model.embedding=1000000000", "model.score.hidden_size=1000000000",
        "model={kind='transformer', layers=1000000000}", "training.threads=1000000000",
        "model={kind='bahdanau', selection={kind='local_monotonic', window=1000000000}}",
        "training.steps=0xffffffffff", "training.batch.size=9999999999999",
    ],
)  # fmt: skip
def test_a_number_past_its_maximum_is_noted(tmp_path: Path, setting: str) -> None:
    write_pairs(tmp_path / "pairs.tsv")
    with within(10):
        said = regard("train", "translate", "--data", "pairs.tsv", "--out", "run",
                      "--set", "text=words", "--set", setting, cwd=tmp_path)  # fmt: skip
    refused(said, r"at most [\d,]+\.$")
    assert not (tmp_path / "run").exists()


def test_a_model_that_has_no_room_is_noted(tmp_path: Path) -> None:
    write_pairs(tmp_path / "pairs.tsv")
    more = "model={kind='transformer', size=65536, heads=1, layers=1000, inner=65536}"
    with within(60):
        said = regard("train", "translate", "--data", "pairs.tsv", "--out", "run",
                      "--set", "text=words", "--set", more, cwd=tmp_path)  # fmt: skip
    assert said.returncode == 2, said.stderr
    told = r"the model has [\d,]+ parameters, .* [\d,.]+ GB .* this machine has [\d,.]+ GB"
    assert re.search(told, said.stderr.splitlines()[-1])
    assert not (tmp_path / "run").exists()


def test_an_aligner_that_has_no_room_is_noted(tmp_path: Path) -> None:
    words = " ".join(f"w{number}" for number in range(200))
    (tmp_path / "pairs.tsv").write_text(
        "".join(f"{words.replace('w', f'{n}x')}\t{words}\n" for n in range(2000)), "utf-8"
    )
    with within(60):
        said = regard("train", "align", "--data", "pairs.tsv", "--out", "run", "--set",
                      "text.size=400000", "--set", "model={size=65536, spelling=65536}",
                      cwd=tmp_path)  # fmt: skip
    assert said.returncode == 2, said.stderr
    assert "the model has " in said.stderr.splitlines()[-1]


@pytest.mark.parametrize("value", [f"0x{'f' * 20_000}", "9" * 4000, f"{{a = [0b{'1' * 65}]}}"])
@pytest.mark.parametrize("key", ["training.steps", "model.kind", "training.rate", "new", "text"])
def test_a_setting_has_no_number_of_many_bits(key: str, value: str) -> None:
    refused(regard("check", "translate", "--set", f"{key}={value}"), "more than 64 bits")


@pytest.mark.parametrize("text", ["a" + ".a" * DEEP + "=1", "a=" + "[" * DEEP])
def test_a_setting_is_nested_in_bounds(text: str) -> None:
    assert sys.getrecursionlimit() < DEEP
    refused(regard("check", "translate", "--set", text), "--set a")
