"""A checkpoint is a folder of safetensors and JSON that is whole or not there.

It is written under a sibling's name: each file with fsync, `manifest.json` with the SHA-256 of
each file last, the folder with fsync; then it is renamed. A process that dies, or a disk that is
full, leaves at most the sibling. What the disk does to it later, the manifest tells.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from regard.seq2seq.errors import RunError

FORMAT = "regard checkpoint 1"
MODEL, OPTIMISER, AVERAGE = "model.safetensors", "optimiser.safetensors", "average.safetensors"
RECORD, MANIFEST = "record.json", "manifest.json"
OURS = frozenset({MODEL, OPTIMISER, AVERAGE, RECORD, MANIFEST})
"""The only files that are ever deleted from a checkpoint's folder."""

After = Callable[[str], None]
"""Called with the name of each stage of a save once it is done."""


class BrokenError(Exception):
    """A checkpoint is not what was written; the message says why."""


def write(folder: Path, files: Mapping[str, bytes], after: After) -> None:
    """Write a checkpoint under its sibling's name, then give it its own."""
    beside = sibling(folder)
    discard(beside)
    try:
        beside.mkdir(parents=True)
        after("begun")
        hashes = {}
        for name, content in files.items():
            _put(beside / name, content)
            hashes[name] = hashlib.sha256(content).hexdigest()
            after(name)
        manifest = {"format": FORMAT, "files": hashes}
        _put(beside / MANIFEST, json.dumps(manifest, indent=1).encode())
        after(MANIFEST)
        sync(beside)
        after("synced")
        discard(folder)  # only a broken one can be in the way: a step is saved once
        os.rename(beside, folder)
        after("renamed")
        sync(folder.parent)
        after("settled")
    except OSError:
        discard(beside)
        raise


def read(folder: Path) -> dict[str, bytes]:
    """The files of a checkpoint, each with the SHA-256 that it was written with."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        if manifest["format"] != FORMAT:
            raise BrokenError(f"{MANIFEST} says {manifest['format']!r}, not {FORMAT!r}")
        hashes = dict(manifest["files"])
        files = {name: (folder / name).read_bytes() for name in hashes}
    except OSError as error:
        raise BrokenError(f"{Path(error.filename or folder).name}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise BrokenError(f"{MANIFEST} is no manifest") from error
    for name, content in files.items():
        if hashlib.sha256(content).hexdigest() != hashes[name]:
            raise BrokenError(f"{name} has another SHA-256 than its manifest says")
    if missing := {MODEL, OPTIMISER, RECORD} - set(files):
        raise BrokenError(f"{MANIFEST} lacks {', '.join(sorted(missing))}")
    return files


def sibling(folder: Path) -> Path:
    """The name under which a checkpoint is written and deleted."""
    return folder.with_name(f".{folder.name}.part")


def discard(folder: Path) -> None:
    """Delete a checkpoint's own files, and its folder if nothing else is in it."""
    for name in sorted(OURS):
        with suppress(OSError):
            (folder / name).unlink()
    with suppress(OSError):
        folder.rmdir()


def remove(folder: Path) -> None:
    """Delete a checkpoint that is no longer needed; one with anything else in it is left alone.

    It is renamed first, so that no half of it is ever taken for a checkpoint.
    """
    with suppress(OSError):
        if {path.name for path in folder.iterdir()} <= OURS:
            beside = sibling(folder)
            os.rename(folder, beside)
            discard(beside)


def pack(tensors: Mapping[str, Tensor]) -> bytes:
    """Tensors as the content of a safetensors file."""
    # Cloned: safetensors refuses tensors that share storage, as a fused RNN's weights may.
    whole = {name: t.detach().cpu().clone().contiguous() for name, t in tensors.items()}
    return safetensors.torch.save(whole)


@torch.no_grad()
def restore(tensors: Mapping[str, Tensor], content: bytes, where: str) -> None:
    """Copy what a file holds into tensors of the same names, shapes and dtypes."""
    found = unpack(content, where)
    if odd := sorted(set(tensors) ^ set(found)):
        side = "lacks" if odd[0] in tensors else "has, and the model has not,"
        raise RunError(
            f"{where} {side} {odd[0]!r}. It belongs to another model: give the model's own folder."
        )
    for name, tensor in tensors.items():
        saved = found[name]
        if (saved.shape, saved.dtype) != (tensor.shape, tensor.dtype):
            raise RunError(
                f"{name!r} is {_kind(saved)} in {where} but {_kind(tensor)} in the model. "
                "It belongs to another model: give the model's own folder."
            )
        tensor.copy_(saved)


def unpack(content: bytes, where: str) -> dict[str, Tensor]:
    """The tensors that a file holds."""
    try:
        return safetensors.torch.load(content)
    except safetensors.SafetensorError as error:
        raise RunError(f"{where} is no safetensors file ({error}). Train again.") from error


def sync(folder: Path) -> None:
    """Make sure that the names in a folder outlive a power failure."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _put(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(handle, rest) :]
        os.fsync(handle)
    finally:
        os.close(handle)


def _kind(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"
