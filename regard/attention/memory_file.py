"""A memory on disk: safetensors, with what its mask says and who prepared it."""

import dataclasses
import json
import os
from os import PathLike
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from regard.attention.errors import ForeignMemoryError, MemoryFileError, OptionError, shown
from regard.attention.masks import Blocks, Causal, Dense, Lengths, Mask, Prefix, Window
from regard.attention.masks.base import And, Not, Or, Rewired
from regard.attention.memory import Memory, Owner

FORMAT = "regard memory 1"
MASKS = {kind.__name__: kind for kind in (
    And, Blocks, Causal, Dense, Lengths, Not, Or, Prefix, Rewired, Window,
)}  # fmt: skip


def save(memory: Memory, fingerprint: str, path: str | PathLike[str]) -> None:
    """Write the memory beside the path, then move it there: a file is whole or not there."""
    tensors = {"values": memory.values}
    tensors |= {f"prepared/{name}": tensor for name, tensor in memory.prepared.items()}
    tensors |= {f"kept/{name}": tensor for name, tensor in memory.kept.items()}
    for name in ("faulty_keys", "faulty_values"):
        if (tensor := getattr(memory, name)) is not None:
            tensors[name] = tensor
    mask = None if memory.mask is None else _describe(memory.mask, "mask", tensors)
    metadata = {"format": FORMAT, "fingerprint": fingerprint, "mask": json.dumps(mask)}
    path = Path(path)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    # Cloned: safetensors refuses tensors that share storage, as keys and values may.
    whole = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    try:
        safetensors.torch.save_file(whole, beside, metadata)
        os.replace(beside, path)
    except (safetensors.SafetensorError, OSError) as error:
        raise MemoryFileError(
            f"{path} cannot be written: {error}. Give a file in a directory that exists."
        ) from error
    finally:
        beside.unlink(missing_ok=True)


def load(path: str | PathLike[str], owner: Owner) -> Memory:
    """Read a memory for `owner`, which must be what prepared it, or equal."""
    if isinstance(owner, type) or not isinstance(owner, Owner):
        raise OptionError(
            f"a memory cannot be loaded for {shown(owner)}. "
            "Pass the attention that prepared it: Memory.load(path, attention)."
        )
    if not Path(path).is_file():
        raise MemoryFileError(f"there is no file at {path}. Write one first: memory.save(path).")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (safetensors.SafetensorError, OSError) as error:
        raise MemoryFileError(
            f"{path} cannot be read as safetensors: {error}. "
            "It is cut off or of another kind: save the memory again."
        ) from error
    if metadata.get("format") != FORMAT:
        raise MemoryFileError(
            f"{path} holds {metadata.get('format', 'other tensors')!r}, not {FORMAT!r}. "
            "Load what memory.save(path) wrote."
        )
    try:
        return _memory(metadata, tensors, path, owner)
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise MemoryFileError(f"{path} is damaged: {error!r}. Save the memory again.") from error


def _memory(
    metadata: dict[str, str], tensors: dict[str, Tensor], path: str | PathLike[str], owner: Owner
) -> Memory:
    if metadata["fingerprint"] != owner.fingerprint():
        raise ForeignMemoryError(
            f"the keys in {path} were prepared by a score with other options or parameters. "
            "Load that attention's state_dict first, or prepare the keys again with this one."
        )
    mask = json.loads(metadata["mask"])
    prepared = _under("prepared/", tensors)
    _ = prepared["keys"]  # every memory has them
    return Memory(
        prepared,
        tensors["values"],
        None if mask is None else _revive(mask, tensors),
        _under("kept/", tensors),
        tensors.get("faulty_keys"),
        tensors.get("faulty_values"),
        owner,
        owner.moves(),
    )


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}


def _describe(mask: Mask, name: str, tensors: dict[str, Tensor]) -> dict[str, Any]:
    """The mask as JSON; its tensors go to `tensors`, under the names that the JSON gives."""
    if type(mask).__name__ not in MASKS:
        raise MemoryFileError(
            f"a mask of kind {type(mask).__name__} cannot be saved. "
            "Prepare the memory without it and give it with each read."
        )
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(mask):  # type: ignore[arg-type]  # every mask is a record
        value = getattr(mask, field.name)
        if isinstance(value, Mask):
            value = _describe(value, f"{name}.{field.name}", tensors)
        elif isinstance(value, Tensor):
            tensors[f"{name}.{field.name}"] = value
            value = {"tensor": f"{name}.{field.name}"}
        fields[field.name] = value
    return {"kind": type(mask).__name__, "fields": fields}


def _revive(described: dict[str, Any], tensors: dict[str, Tensor]) -> Mask:
    kind = MASKS[described["kind"]]
    mask: Mask = object.__new__(kind)
    for field in dataclasses.fields(kind):
        setattr(mask, field.name, _revived(described["fields"][field.name], tensors))
    return mask


def _revived(value: Any, tensors: dict[str, Tensor]) -> Any:
    if not isinstance(value, dict):
        return value
    return tensors[value["tensor"]] if "tensor" in value else _revive(value, tensors)
