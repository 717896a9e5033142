"""A checkpoint is a folder of safetensors and JSON that is whole or not there.

It is written under a sibling's name: each file with fsync, `manifest.json` with the SHA-256 of
each file last, the folder with fsync; then it is renamed. A process that dies, or a disk that is
full, leaves at most the sibling. What the disk does to it later, the manifest tells. What the
manifest says is believed no further than it must be: it names files of a checkpoint only.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from regard.seq2seq.errors import RunError
from regard.seq2seq.system.files import parse_json, read_regular, sha256
from regard.seq2seq.system.machine import memory_size

FORMAT = "regard checkpoint 2"
MODEL, OPTIMISER, AVERAGE = "model.safetensors", "optimiser.safetensors", "average.safetensors"
RECORD, MANIFEST = "record.json", "manifest.json"
OURS = frozenset({MODEL, OPTIMISER, AVERAGE, RECORD, MANIFEST})
"""The only files that are ever read from a checkpoint's folder, or deleted."""

LARGEST = 1 << 16
"""So many bytes a manifest has at most."""

After = Callable[[str], None]
"""Called with the name of each stage of a save once it is done."""


class BrokenError(Exception):
    """A checkpoint is not what was written; the message says why."""


class Entry(NamedTuple):
    """What a manifest says of a file."""

    sha256: str
    bytes: int


def write(folder: Path, files: Mapping[str, bytes], after: After) -> None:
    """Write a checkpoint under its sibling's name, then give it its own."""
    beside = sibling(folder)
    discard(beside)
    try:
        beside.mkdir(parents=True)
        after("begun")
        entries = {}
        for name, content in files.items():
            _put(beside / name, content)
            entries[name] = Entry(sha256(content), len(content))._asdict()
            after(name)
        manifest = {"format": FORMAT, "files": entries}
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
    entries = _entries(_content(folder, MANIFEST, LARGEST))
    if missing := {MODEL, OPTIMISER, RECORD} - set(entries):
        raise BrokenError(f"{MANIFEST} lacks {', '.join(sorted(missing))}")
    if (needed := sum(entry.bytes for entry in entries.values())) > memory_size():
        raise BrokenError(f"{MANIFEST} says {needed:,} bytes, more than this machine's memory has")
    return {name: _checked(folder, name, entry) for name, entry in entries.items()}


def read_record(folder: Path) -> bytes:
    """The record of a checkpoint alone, with the SHA-256 that it was written with."""
    entries = _entries(_content(folder, MANIFEST, LARGEST))
    if RECORD not in entries:
        raise BrokenError(f"{MANIFEST} lacks {RECORD}")
    return _checked(folder, RECORD, entries[RECORD])


def _entries(content: bytes) -> dict[str, Entry]:
    """What a manifest says of each file, if it says what a manifest may."""
    try:
        manifest = parse_json(content)
        written, files = manifest["format"], manifest["files"]
    except (ValueError, KeyError, TypeError) as error:
        raise BrokenError(f"{MANIFEST} is no manifest") from error
    if written != FORMAT:
        raise BrokenError(
            f"{MANIFEST} says {written!r:.60}, not {FORMAT!r}: another version wrote it"
        )
    if not isinstance(files, dict):
        raise BrokenError(f"{MANIFEST} is no manifest")
    if odd := sorted(set(files) - (OURS - {MANIFEST})):
        raise BrokenError(f"{MANIFEST} names {odd[0]!r:.60}, which is no file of a checkpoint")
    return {name: _entry(name, said) for name, said in files.items()}


def _entry(name: str, said: object) -> Entry:
    match said:
        case {"sha256": str(digest), "bytes": int(size), **rest} if not rest:
            if re.fullmatch("[0-9a-f]{64}", digest) and size >= 0 and not isinstance(size, bool):
                return Entry(digest, size)
    raise BrokenError(f"{MANIFEST} has no SHA-256 and size of {name}")


def _checked(folder: Path, name: str, entry: Entry) -> bytes:
    """A file of a checkpoint, if it is what its manifest says."""
    content = _content(folder, name, entry.bytes)
    if len(content) < entry.bytes:
        raise BrokenError(f"{name} has {len(content):,} bytes of {entry.bytes:,}")
    if sha256(content) != entry.sha256:
        raise BrokenError(f"{name} has another SHA-256 than its manifest says")
    return content


def _content(folder: Path, name: str, limit: int) -> bytes:
    try:
        # From the run's folder on: neither checkpoints/ nor the folder in it may be a link.
        run = folder.parent.parent
        return read_regular(run, folder.parent.name, folder.name, name, limit=limit)
    except OSError as error:
        raise BrokenError(f"{Path(error.filename or folder).name}: {error.strerror}") from error


def sibling(folder: Path) -> Path:
    """The name under which a checkpoint is written and deleted."""
    return folder.with_name(f".{folder.name}.part")


def discard(folder: Path) -> None:
    """Delete a checkpoint's own files, and its folder if nothing else is in it.

    A link to a folder is left alone, and so is what it leads to.
    """
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        for name in sorted(OURS):
            with suppress(OSError):
                os.unlink(name, dir_fd=handle)
    finally:
        os.close(handle)
    with suppress(OSError):
        folder.rmdir()


def remove(folder: Path) -> None:
    """Delete a checkpoint that is no longer needed; one with anything else in it is left alone.

    It is renamed first, so that no half of it is ever taken for a checkpoint.
    """
    with suppress(OSError):
        if not folder.is_symlink() and set(os.listdir(folder)) <= OURS:
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
    # A dtype that torch has not is a KeyError there, and a shape too large a RuntimeError.
    except (safetensors.SafetensorError, KeyError, ValueError, RuntimeError) as error:
        told = " ".join(str(error).split())[:200]
        raise RunError(f"{where} is no safetensors file ({told}). Train again.") from error


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
