"""The checkpoints of a run: the last few and the best, and which of them can be read."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from torch import Tensor, nn

from regard.seq2seq.errors import RunError
from regard.seq2seq.training import checkpoint
from regard.seq2seq.training.checkpoint import AVERAGE, MODEL, RECORD, After, BrokenError
from regard.seq2seq.training.record import Record

FOLDER = "checkpoints"
NAME = re.compile(r"step-(\d{8,})")
UNFINISHED = re.compile(r"\.step-\d{8,}\.part")


def nothing(stage: str) -> None:
    """What comes after a stage of a save when nobody looks."""


@dataclass(frozen=True, slots=True)
class Found:
    """A checkpoint that was read, and is what was written."""

    path: Path
    record: Record
    files: Mapping[str, bytes]
    notes: list[str]
    """What is to be told: a line for each that could not be used."""

    @property
    def step(self) -> int:
        """After which update it was saved."""
        return self.record.step


class Store:
    """The checkpoints in a run's folder, `checkpoints/step-00000500` and so on."""

    def __init__(self, directory: Path, keep: int = 3, after: After = nothing) -> None:
        self.folder = directory / FOLDER
        self._keep, self._after = keep, after
        self._broken: set[int] = set()

    def steps(self) -> list[int]:
        """The steps with a checkpoint, whole or broken, the first first."""
        if not self.folder.is_dir():
            return []
        found = [NAME.fullmatch(path.name) for path in self.folder.iterdir()]
        return sorted(int(match[1]) for match in found if match)

    def path(self, step: int) -> Path:
        """The folder of a checkpoint."""
        return self.folder / f"step-{step:08d}"

    def tidy(self) -> None:
        """Delete what a save that was cut off has left. Only who holds the lock may do it."""
        if self.folder.is_dir():
            for path in list(self.folder.iterdir()):
                if UNFINISHED.fullmatch(path.name):
                    checkpoint.discard(path)

    def save(self, record: Record, tensors: Mapping[str, Mapping[str, Tensor]]) -> Path:
        """Write a checkpoint; then delete those that are no longer among the last or the best."""
        path = self.path(record.step)
        files = {name: checkpoint.pack(named) for name, named in tensors.items()}
        try:
            checkpoint.write(path, files | {RECORD: record.to_json()}, self._after)
        except OSError as error:
            last = max((s for s in self.steps() if s not in self._broken), default=None)
            kept = "There is none before it" if last is None else f"The last good one is {last}"
            raise RunError(
                f"the checkpoint of step {record.step} cannot be written to {self.folder}: "
                f"{error.strerror}. {kept}. Make room there and run the same command again."
            ) from error
        self._broken.discard(record.step)
        self._prune()
        self._after("pruned")
        return path

    def newest(self) -> Found | None:
        """The last checkpoint that can be read; None if there is none at all."""
        notes: list[str] = []
        for step in reversed(self.steps()):
            try:
                told = [f"{note}; step {step} is used" for note in notes]
                return replace(self._read(step), notes=told)
            except BrokenError as error:
                self._broken.add(step)
                notes.append(f"checkpoint {self.path(step)} is broken ({error})")
        if notes:
            raise RunError(
                f"no checkpoint in {self.folder} can be read: {notes[0]}. Begin in another folder."
            )
        return None

    def best(self) -> Found:
        """The best checkpoint, or the last where there is no best."""
        found = self.newest()
        if found is None:
            raise RunError(f"{self.folder.parent} holds no checkpoint. Train first.")
        best = found.record.best
        if best is None or best.step == found.step:
            return found
        try:
            return replace(self._read(best.step), notes=found.notes)
        except BrokenError as error:
            lost = f"the best checkpoint, of step {best.step}, cannot be read ({error})"
            note = f"{lost}; the last, of step {found.step}, is used"
            return replace(found, notes=[*found.notes, note])

    def _read(self, step: int) -> Found:
        path = self.path(step)
        files = checkpoint.read(path)
        return Found(path, Record.from_json(files[RECORD], str(path / RECORD)), files, [])

    def _prune(self) -> None:
        """Delete all but the last few whole ones and what these call their best."""
        whole = [step for step in self.steps() if step not in self._broken]
        needed = set(whole[-self._keep :])
        for step in whole[-self._keep :]:
            path = self.path(step) / RECORD
            with suppress(OSError, RunError):
                if best := Record.from_json(path.read_bytes(), str(path)).best:
                    needed.add(best.step)
        for step in whole:
            if step not in needed:
                checkpoint.remove(self.path(step))


def weights(model: nn.Module) -> dict[str, Tensor]:
    """What a model is: its parameters and lasting buffers, tied ones once."""
    lasting = set(model.state_dict())
    named = [*model.named_parameters(), *model.named_buffers()]
    return {name: tensor for name, tensor in named if name in lasting}


def load_weights(model: nn.Module, found: Found, averaged: bool = True) -> bool:
    """Copy a checkpoint's weights into a model; tell whether they are the averaged ones."""
    tensors, files = weights(model), found.files
    checkpoint.restore(tensors, files[MODEL], str(found.path / MODEL))
    if not averaged or AVERAGE not in files:
        return False
    where = str(found.path / AVERAGE)
    names = checkpoint.unpack(files[AVERAGE], where)
    checkpoint.restore({name: tensors[name] for name in names}, files[AVERAGE], where)
    return True
