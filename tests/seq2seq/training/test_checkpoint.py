"""Corrupt and incomplete checkpoints, full disks, and what may be deleted."""

import dataclasses
import errno
import os
import re
import shutil
import signal
from contextlib import suppress

import pytest
import torch

from regard.seq2seq.errors import DataError, RunError
from regard.seq2seq.training import BatchStream, Checkpoints, checkpoint_files
from regard.seq2seq.training.checkpoint_files import FILES, BrokenError
from regard.seq2seq.training.run_state import RunState
from tests.seq2seq.training.test_run import CrashError, RecordingReporter, crash
from tests.seq2seq.training.toy import OPTIONS, Code, Examples, left, plan, train

CALLS = ("write", "fsync", "mkdir", "rename", "open")


@pytest.fixture(scope="module")
def halfway(tmp_path_factory):
    """A run that died after step 13: checkpoints of steps 8 to 10 at the most."""
    directory = tmp_path_factory.mktemp("halfway")
    with pytest.raises(CrashError):
        train(directory, reporter=RecordingReporter(13, crash))
    return directory


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    directory = tmp_path_factory.mktemp("whole")
    train(directory)
    return left(directory)


@pytest.fixture
def run_folder(halfway, tmp_path):
    return shutil.copytree(halfway, tmp_path / "run")


def checkpoints(directory):
    return sorted(path.name for path in (directory / "checkpoints").iterdir())


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path):
    os.truncate(path, path.stat().st_size - 1)


@pytest.mark.parametrize("name", sorted(FILES))
@pytest.mark.parametrize("harm", [flip, cut, os.remove])
def test_a_harmed_checkpoint_is_reported_in_a_line(run_folder, name, harm):
    last = max((run_folder / "checkpoints").iterdir())
    before = Checkpoints(run_folder).steps()[-2]
    harm(last / name)
    found = Checkpoints(run_folder).newest()
    assert found is not None
    assert found.step == before
    assert found.files == checkpoint_files.read(Checkpoints(run_folder).path(before))
    assert len(found.notes) == 1
    # A flipped manifest blames the file whose hash it holds.
    blamed = r"\w+\.\w+" if (name, harm) == ("manifest.json", flip) else name
    assert re.fullmatch(
        rf"checkpoint \S*/{last.name} is broken \({blamed}\b.*\); step {before} is used",
        found.notes[0],
    )


@pytest.mark.parametrize("harms", [1, 2])
def test_the_one_before_a_harmed_one_is_used(run_folder, whole, harms):
    for path in sorted((run_folder / "checkpoints").iterdir())[-harms:]:
        flip(path / "model.safetensors")
    heard = RecordingReporter()
    train(run_folder, reporter=heard)
    assert len(heard.notes) == harms
    assert left(run_folder) == whole


def test_any_byte_of_a_manifest_matters(run_folder):
    last = max((run_folder / "checkpoints").iterdir())
    content = (last / "manifest.json").read_bytes()
    for place in range(len(content)):
        flipped = bytearray(content)
        flipped[place] ^= 1
        (last / "manifest.json").write_bytes(flipped)
        with pytest.raises(BrokenError):
            checkpoint_files.read(last)


def test_a_lost_log_is_noted(run_folder):
    (run_folder / "log.jsonl").unlink()
    heard = RecordingReporter()
    train(run_folder, reporter=heard)
    assert re.fullmatch(r"\d+ bytes of .*log\.jsonl are missing", heard.notes[0])


def test_if_all_are_harmed_nothing_is_begun(run_folder):
    for path in (run_folder / "checkpoints").iterdir():
        flip(path / "model.safetensors")
    before = left(run_folder)
    with pytest.raises(
        RunError, match=r"no checkpoint in .* can be read: .* Train again in another"
    ):
        train(run_folder)
    assert left(run_folder) == before


def test_a_harmed_best_is_noted(run_folder, whole):
    train(run_folder)
    store = Checkpoints(run_folder)
    best = store.best().step
    assert best != OPTIONS.steps
    flip(store.path(best) / "average.safetensors")
    found = Checkpoints(run_folder).best()
    assert found.step == OPTIONS.steps
    assert re.match(
        rf"the best checkpoint, of step {best}, cannot be read \(average", found.notes[0]
    )


def harmful(monkeypatch, call, number):
    """The system call of this number, among those on checkpoints, finds the disk full."""
    real, count = getattr(os, call), [0]

    def full(*arguments, **named):
        count[0] += 1
        if count[0] == number:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments, **named)

    monkeypatch.setattr(checkpoint_files.os, call, full)
    return count


@pytest.mark.parametrize("call", CALLS)
def test_a_full_disk_loses_nothing(run_folder, whole, monkeypatch, call):
    """Every such call of a save fails in turn; the run is then taken up each time."""
    (run_folder / "checkpoints" / "mine.txt").write_text("mine")
    store = Checkpoints(run_folder)
    files = store.newest().files
    kept = checkpoints(run_folder)
    target = run_folder / "checkpoints" / "step-00000099"
    for number in range(1, 100):
        with monkeypatch.context() as patch:
            count = harmful(patch, call, number)
            with suppress(OSError):
                checkpoint_files.write(target, files, lambda stage: None)
            if count[0] < number:
                break
        there = checkpoints(run_folder)
        if target.name in there:  # it failed after the rename: the checkpoint is whole
            assert checkpoint_files.read(target) == files
            checkpoint_files.remove(target)
        assert checkpoints(run_folder) == kept
    assert number > 1
    assert checkpoint_files.read(target) == files
    checkpoint_files.remove(target)
    train(run_folder)
    (run_folder / "checkpoints" / "mine.txt").unlink()
    assert left(run_folder) == whole


def test_a_full_disk_stops_a_run_with_its_reason(run_folder, whole, monkeypatch):
    kept = Checkpoints(run_folder).steps()
    with monkeypatch.context() as patch:
        real = checkpoint_files._write_synced

        def full(path, content):
            if path.name == "optimiser.safetensors":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            real(path, content)

        patch.setattr(checkpoint_files, "_write_synced", full)
        with pytest.raises(RunError) as error:
            train(run_folder)
    assert f"No space left on device. The last intact one is {kept[-1]}." in str(error.value)
    assert Checkpoints(run_folder).steps() == kept
    train(run_folder)
    assert left(run_folder) == whole


def test_only_our_own_is_deleted(run_folder):
    folder = run_folder / "checkpoints"
    mine = [
        run_folder / "notes.txt", folder / "notes.txt", folder / ".step-5.part" / "notes.txt",
        folder / "step-final" / "model.safetensors", folder / "step-00000000" / "notes.txt",
        folder / ".step-00000007.part" / "notes.txt", max(folder.iterdir()) / "notes.txt",
    ]  # fmt: skip
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    unfinished = folder / ".step-00000011.part"
    unfinished.mkdir()
    (unfinished / "model.safetensors").write_bytes(b"half")
    train(run_folder, dataclasses.replace(OPTIONS, keep=1))
    assert all(path.read_text() == "mine" for path in mine)
    assert not unfinished.exists()


def test_the_last_few_and_the_best_are_kept(tmp_path):
    class Keeps(RecordingReporter):
        def saved(self, path):
            super().saved(path)
            last = sorted(self.saves)[-2:]
            bests = {f"step-{step:08d}" for step in self.bests[-1:]}
            assert set(last) | bests <= set(checkpoints(tmp_path))
            assert len(checkpoints(tmp_path)) <= 4

    train(tmp_path, dataclasses.replace(OPTIONS, steps=13, save_every=1), reporter=Keeps())


def test_a_harmed_one_is_not_counted_among_the_last(run_folder, whole):
    last = max((run_folder / "checkpoints").iterdir())
    flip(last / "record.json")
    options = dataclasses.replace(OPTIONS, keep=1)
    before = Checkpoints(run_folder).steps()[-2]
    assert before + 1 < Checkpoints(run_folder).steps()[-1]
    stop = RecordingReporter(before + 1, lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert train(run_folder, options, reporter=stop).step == before + 1
    assert Checkpoints(run_folder).newest().step == before + 1
    train(run_folder)
    assert left(run_folder)["log"] == whole["log"]


def test_the_best_of_another_run_is_noted(run_folder, whole, tmp_path):
    train(run_folder)
    best = Checkpoints(run_folder).best().step
    assert best != OPTIONS.steps
    train(tmp_path / "other", dataclasses.replace(OPTIONS, seed=4))
    steps = Checkpoints(tmp_path / "other").steps()
    shutil.rmtree(Checkpoints(run_folder).path(best))
    other = Checkpoints(tmp_path / "other").path(steps[0])
    record = RunState.from_json((other / "record.json").read_bytes(), "it")
    files = checkpoint_files.read(other) | {
        "record.json": dataclasses.replace(record, step=best).to_json()
    }
    checkpoint_files.write(Checkpoints(run_folder).path(best), files, lambda stage: None)
    found = Checkpoints(run_folder).best()
    assert found.step == OPTIONS.steps
    assert re.search("it belongs to another run than that of step", found.notes[0])


def test_a_linked_folder_is_not_discarded(run_folder, tmp_path):
    last = max((run_folder / "checkpoints").iterdir())
    names = sorted(os.listdir(last))
    link = tmp_path / ".step-00000001.part"
    link.symlink_to(last)
    checkpoint_files.discard(link)
    checkpoint_files.remove(link)
    assert link.is_symlink()
    assert sorted(os.listdir(last)) == names


def test_a_place_past_an_epoch_is_no_endless_wait():
    examples = Examples()
    feed = BatchStream(examples, Code(), plan, 2)
    feed.position = 4
    with pytest.raises(
        DataError, match="epoch 0 has 4 updates, but the checkpoint was saved after 4"
    ):
        next(iter(feed))


def test_tensors_of_another_model_are_named():
    saved = checkpoint_files.pack({"a": torch.ones(2, 3), "b": torch.ones(5)})
    ours = {"a": torch.zeros(2, 3), "b": torch.zeros(5)}
    checkpoint_files.restore(ours, saved, "file")
    assert torch.equal(ours["a"], torch.ones(2, 3))
    for wrong, said in [
        ({"a": ours["a"]}, "file has, unlike the model, 'b'"),
        ({**ours, "c": torch.ones(1)}, "file lacks 'c'"),
        ({**ours, "b": torch.ones(7)}, r"'b' is \(5,\) float32 in file but \(7,\) float32"),
        (
            {**ours, "b": torch.ones(5).double()},
            r"'b' is \(5,\) float32 in file but \(5,\) float64",
        ),
    ]:
        with pytest.raises(RunError, match=said):
            checkpoint_files.restore(wrong, saved, "file")


def test_a_folder_of_something_else_is_no_checkpoint(tmp_path):
    for content in (
        b"",
        b"[]",
        b"{}",
        b'{"format": "other"}',
        b'{"format": "regard checkpoint 2"}',
        b'{"format": "regard checkpoint 2", "files": []}',
        b'{"format": "regard checkpoint 2", "files": {"model.safetensors": "0"}}',
    ):
        (tmp_path / "manifest.json").write_bytes(content)
        with pytest.raises(BrokenError, match=r"manifest\.json"):
            checkpoint_files.read(tmp_path)
