"""A checkpoint is a folder of safetensors and JSON, written atomically.

It is written under a temporary name: each file with fsync, `manifest.json` with the SHA-256 of
each file last, the folder with fsync; then it is renamed. A crash or a full disk leaves at most
the temporary folder. Later corruption shows as a SHA-256 that differs from the manifest's. The
manifest itself is untrusted: it may name files of a checkpoint only.
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
FILES = frozenset({MODEL, OPTIMISER, AVERAGE, RECORD, MANIFEST})
"""The only files that are ever read from a checkpoint's folder, or deleted."""

MAX_MANIFEST = 1 << 16
"""Maximum size of a manifest in bytes."""

After = Callable[[str], None]
"""Called with the name of each stage of a save once it is done."""


class BrokenError(Exception):
    """A checkpoint is corrupt or incomplete; the message says why."""


class Entry(NamedTuple):
    """A file as its manifest lists it."""

    sha256: str
    bytes: int


def write(folder: Path, files: Mapping[str, bytes], after: After) -> None:
    """Write a checkpoint under a temporary name, then rename it."""
    temporary = temporary_path(folder)
    discard(temporary)
    try:
        temporary.mkdir(parents=True)
        after("begun")
        entries = {}
        for name, content in files.items():
            _write_synced(temporary / name, content)
            entries[name] = Entry(sha256(content), len(content))._asdict()
            after(name)
        manifest = {"format": FORMAT, "files": entries}
        _write_synced(temporary / MANIFEST, json.dumps(manifest, indent=1).encode())
        after(MANIFEST)
        sync(temporary)
        after("synced")
        discard(folder)  # only a broken one can be in the way: a step is saved once
        os.rename(temporary, folder)
        after("renamed")
        sync(folder.parent)
        after("settled")
    except OSError:
        discard(temporary)
        raise


def read(folder: Path) -> dict[str, bytes]:
    """The files of a checkpoint, each verified by its SHA-256."""
    entries = _entries(_content(folder, MANIFEST, MAX_MANIFEST))
    if missing := {MODEL, OPTIMISER, RECORD} - set(entries):
        raise BrokenError(f"{MANIFEST} lacks {', '.join(sorted(missing))}")
    if (needed := sum(entry.bytes for entry in entries.values())) > memory_size():
        raise BrokenError(f"{MANIFEST} lists {needed:,} bytes, more than this machine's memory has")
    return {name: _checked(folder, name, entry) for name, entry in entries.items()}


def read_record(folder: Path) -> bytes:
    """The record of a checkpoint alone, verified by its SHA-256."""
    entries = _entries(_content(folder, MANIFEST, MAX_MANIFEST))
    if RECORD not in entries:
        raise BrokenError(f"{MANIFEST} lacks {RECORD}")
    return _checked(folder, RECORD, entries[RECORD])


def _entries(content: bytes) -> dict[str, Entry]:
    """The files that a manifest lists, validated."""
    try:
        manifest = parse_json(content)
        written, files = manifest["format"], manifest["files"]
    except (ValueError, KeyError, TypeError) as error:
        raise BrokenError(f"{MANIFEST} is not a manifest") from error
    if written != FORMAT:
        raise BrokenError(
            f"{MANIFEST} has format {written!r:.60}, not {FORMAT!r}: another version wrote it"
        )
    if not isinstance(files, dict):
        raise BrokenError(f"{MANIFEST} is not a manifest")
    if odd := sorted(set(files) - (FILES - {MANIFEST})):
        raise BrokenError(f"{MANIFEST} names {odd[0]!r:.60}, which is not a file of a checkpoint")
    return {name: _entry(name, entry) for name, entry in files.items()}


def _entry(name: str, content: object) -> Entry:
    match content:
        case {"sha256": str(digest), "bytes": int(size), **rest} if not rest:
            if re.fullmatch("[0-9a-f]{64}", digest) and size >= 0 and not isinstance(size, bool):
                return Entry(digest, size)
    raise BrokenError(f"{MANIFEST} has no SHA-256 and size of {name}")


def _checked(folder: Path, name: str, entry: Entry) -> bytes:
    """A file of a checkpoint, verified against its manifest."""
    content = _content(folder, name, entry.bytes)
    if len(content) < entry.bytes:
        raise BrokenError(f"{name} has {len(content):,} bytes of {entry.bytes:,}")
    if sha256(content) != entry.sha256:
        raise BrokenError(f"{name} has another SHA-256 than its manifest lists")
    return content


def _content(folder: Path, name: str, limit: int) -> bytes:
    try:
        # From the run's folder on: neither checkpoints/ nor the folder in it may be a link.
        run = folder.parent.parent
        return read_regular(run, folder.parent.name, folder.name, name, limit=limit)
    except OSError as error:
        raise BrokenError(f"{Path(error.filename or folder).name}: {error.strerror}") from error


def temporary_path(folder: Path) -> Path:
    """The temporary name under which a checkpoint is written and deleted."""
    return folder.with_name(f".{folder.name}.part")


def discard(folder: Path) -> None:
    """Delete a checkpoint's own files, and its folder if nothing else is in it.

    A symbolic link is left alone, and so is its target.
    """
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        for name in sorted(FILES):
            with suppress(OSError):
                os.unlink(name, dir_fd=handle)
    finally:
        os.close(handle)
    with suppress(OSError):
        folder.rmdir()


def remove(folder: Path) -> None:
    """Delete a checkpoint that is no longer needed; a folder with other files is left alone.

    It is renamed first, so that a partial one is never taken for a checkpoint.
    """
    with suppress(OSError):
        if not folder.is_symlink() and set(os.listdir(folder)) <= FILES:
            temporary = temporary_path(folder)
            os.rename(folder, temporary)
            discard(temporary)


def pack(tensors: Mapping[str, Tensor]) -> bytes:
    """Tensors as the content of a safetensors file."""
    # Cloned: safetensors refuses tensors that share storage, as a fused RNN's weights may.
    cloned = {name: t.detach().cpu().clone().contiguous() for name, t in tensors.items()}
    return safetensors.torch.save(cloned)


@torch.no_grad()
def restore(tensors: Mapping[str, Tensor], content: bytes, where: str) -> None:
    """Copy the tensors of a file into tensors of the same names, shapes and dtypes."""
    found = unpack(content, where)
    if odd := sorted(set(tensors) ^ set(found)):
        side = "lacks" if odd[0] in tensors else "has, unlike the model,"
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
    """The tensors of a safetensors file."""
    try:
        return safetensors.torch.load(content)
    # A dtype that torch has not is a KeyError there, and a shape too large a RuntimeError.
    except (safetensors.SafetensorError, KeyError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise RunError(f"{where} is not a safetensors file ({reason}). Train again.") from error


def sync(folder: Path) -> None:
    """Flush a folder's entries to disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write_synced(path: Path, content: bytes) -> None:
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
