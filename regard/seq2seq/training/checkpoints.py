"""The checkpoints of a run: save, prune, and find the latest or the best that is intact."""

import errno
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor, nn

from regard.seq2seq.errors import RunError
from regard.seq2seq.system.files import list_folder
from regard.seq2seq.training import checkpoint_files
from regard.seq2seq.training.checkpoint_files import AVERAGE, MODEL, RECORD, After, BrokenError
from regard.seq2seq.training.log import LOG
from regard.seq2seq.training.run_state import RunState, same_run

FOLDER = "checkpoints"
NAME = re.compile(r"step-([0-9]{8}|[1-9][0-9]{8,17})")
IN_THE_WAY = (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR)
"""Errors of a rename whose target is not a checkpoint of ours, so it is not deleted."""

UNFINISHED = re.compile(r"\.step-[0-9]{8,}\.part")


def no_hook(stage: str) -> None:
    """The default hook after each stage of a save: none."""


@dataclass(frozen=True, slots=True)
class FoundCheckpoint:
    """A checkpoint that was read and verified."""

    path: Path
    record: RunState
    files: Mapping[str, bytes]
    notes: list[str]
    """A line for each newer checkpoint that could not be used."""

    @property
    def step(self) -> int:
        """After which update it was saved."""
        return self.record.step


class Checkpoints:
    """The checkpoints in a run's folder, `checkpoints/step-00000500` and so on."""

    def __init__(self, directory: Path, keep: int = 3, after: After = no_hook) -> None:
        self.folder = directory / FOLDER
        self._keep, self._after = keep, after
        self._broken: set[int] = set()

    def steps(self) -> list[int]:
        """The steps with a checkpoint, intact or broken, in ascending order."""
        found = [NAME.fullmatch(name) for name in self._names()]
        return sorted(int(match[1]) for match in found if match)

    def path(self, step: int) -> Path:
        """The folder of a checkpoint."""
        return self.folder / f"step-{step:08d}"

    def tidy(self) -> None:
        """Delete what an interrupted save has left. Only the holder of the lock may do it."""
        for path in [self.folder / name for name in self._names() if UNFINISHED.fullmatch(name)]:
            if path.is_symlink() or not path.is_dir():
                kind = "a symbolic link" if path.is_symlink() else "not a folder"
                raise RunError(f"{path} is {kind}, so no run has left it there. Move it away.")
            checkpoint_files.discard(path)

    def save(self, record: RunState, tensors: Mapping[str, Mapping[str, Tensor]]) -> Path:
        """Write a checkpoint; then delete those that are no longer among the last or the best."""
        path = self.path(record.step)
        files = {name: checkpoint_files.pack(named) for name, named in tensors.items()}
        try:
            checkpoint_files.write(path, files | {RECORD: record.to_json()}, self._after)
        except OSError as error:
            last = max((s for s in self.steps() if s not in self._broken), default=None)
            kept = "There is no earlier one" if last is None else f"The last intact one is {last}"
            cure = f"Move {path} away" if error.errno in IN_THE_WAY else "Make room there"
            raise RunError(
                f"the checkpoint of step {record.step} cannot be written to {self.folder}: "
                f"{error.strerror}. {kept}. {cure} and run the same command again."
            ) from error
        self._broken.discard(record.step)
        self._prune()
        self._after("pruned")
        return path

    def newest(self) -> FoundCheckpoint | None:
        """The last checkpoint that can be read; None if there is none at all."""
        notes: list[str] = []
        for step in reversed(self.steps()):
            try:
                found = self._read(step)
                return replace(found, notes=[f"{note}; step {step} is used" for note in notes])
            except BrokenError as error:
                self._broken.add(step)
                notes.append(f"checkpoint {self.path(step)} is broken ({error})")
        if notes:
            raise RunError(
                f"no checkpoint in {self.folder} can be read: {notes[0]}. Train again in another "
                "folder."
            )
        return None

    def best(self) -> FoundCheckpoint:
        """The best checkpoint, or the last where there is no best."""
        return self._best(self._last())

    def loaded(self, *, last: bool) -> FoundCheckpoint:
        """The best checkpoint, or the last; noted if there may have been later ones."""
        newest = self._last()
        found = newest if last else self._best(newest)
        return replace(found, notes=[*found.notes, *self._later(newest)])

    def _later(self, newest: FoundCheckpoint) -> list[str]:
        """A note if the log shows that there were later checkpoints, or may have been."""
        size = 0
        with suppress(OSError):
            size = os.lstat(self.folder.parent / LOG).st_size
        if size > newest.record.log:
            return [f"{LOG} continues after step {newest.step}, which is the last checkpoint"]
        if size < newest.record.log:
            return [
                f"{LOG} is truncated or missing, so checkpoints after step {newest.step} may be, "
                "too"
            ]
        return []

    def _last(self) -> FoundCheckpoint:
        found = self.newest()
        if found is None:
            raise RunError(f"{self.folder.parent} has no checkpoint. Train first.")
        return found

    def _best(self, found: FoundCheckpoint) -> FoundCheckpoint:
        best = found.record.best
        if best is None or best.step == found.step:
            return found
        try:
            better = self._read(best.step)
            if not same_run(better.record.identity, found.record.identity):
                raise BrokenError(f"it belongs to another run than that of step {found.step}")
            return replace(better, notes=found.notes)
        except BrokenError as error:
            broken = f"the best checkpoint, of step {best.step}, cannot be read ({error})"
            note = f"{broken}; the latest, of step {found.step}, is used"
            return replace(found, notes=[*found.notes, note])

    def _read(self, step: int) -> FoundCheckpoint:
        path = self.path(step)
        files = checkpoint_files.read(path)
        record = _record(files[RECORD], step)
        ema = record.identity.settings.get("training.ema", 0)
        if bool(ema) != (AVERAGE in files):
            has = "has" if AVERAGE in files else "lacks"
            raise BrokenError(
                f"{checkpoint_files.MANIFEST} {has} {AVERAGE}, but training.ema is {ema}"
            )
        return FoundCheckpoint(path, record, files, [])

    def _names(self) -> list[str]:
        try:
            return list_folder(self.folder.parent, FOLDER)
        except OSError as error:
            raise RunError(
                f"{error.filename}: {error.strerror}. Put the run's own back."
            ) from error

    def _prune(self) -> None:
        """Delete all but the last few intact ones and the best steps that these record."""
        intact = [step for step in self.steps() if step not in self._broken]
        needed = set(intact[-self._keep :])
        for step in intact[-self._keep :]:
            with suppress(BrokenError):
                if best := _record(checkpoint_files.read_record(self.path(step)), step).best:
                    needed.add(best.step)
        for step in intact:
            if step not in needed:
                checkpoint_files.remove(self.path(step))


def _record(content: bytes, step: int) -> RunState:
    """The record of the checkpoint of this step."""
    try:
        record = RunState.from_json(content, RECORD)
    except RunError as error:
        raise BrokenError(str(error).removesuffix(".")) from error
    if record.step != step:
        raise BrokenError(f"{RECORD} is of step {record.step}")
    return record


def weights(model: nn.Module) -> dict[str, Tensor]:
    """Parameters and persistent buffers, tied ones once."""
    persistent = set(model.state_dict())
    named = [*model.named_parameters(), *model.named_buffers()]
    return {name: tensor for name, tensor in named if name in persistent}


def load_weights(model: nn.Module, found: FoundCheckpoint, averaged: bool = True) -> bool:
    """Copy a checkpoint's weights into a model; returns whether they are the averaged ones."""
    tensors, files = weights(model), found.files
    checkpoint_files.restore(tensors, files[MODEL], str(found.path / MODEL))
    if not averaged or AVERAGE not in files:
        return False
    trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
    checkpoint_files.restore(trained, files[AVERAGE], str(found.path / AVERAGE))
    return True
