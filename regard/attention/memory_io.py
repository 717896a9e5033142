"""Save and load memories: safetensors, with the mask as JSON and a fingerprint of the score.

A file is not trusted. A digest detects damage; every name, shape, dtype and number is checked,
because C indexes by them; and what kernels cache of the keys is computed again.
"""

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from regard.attention.core.autocast import autocast_disabled
from regard.attention.core.axes import NonFiniteFlags, Prepared, Values
from regard.attention.core.errors import ForeignMemoryError, MemoryFileError, shown
from regard.attention.core.validation import FLOATS, broadcasts, broadcasts_to
from regard.attention.masks import Blocks, Causal, Dense, Lengths, Mask, Prefix, Window
from regard.attention.masks.base import And, Not, Or, RemappedMask

FORMAT = "regard memory 2"
NONFINITE = ("nonfinite_keys", "nonfinite_values")
MAX_SIZE = 1 << 20
"""Of a key or a value; a larger size is damage."""

DAMAGE = (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError)
"""What damaged content may raise; the errors of this library are among them."""


class SavedMemory(NamedTuple):
    """What a file holds of a memory; kernels' caches are computed again from it."""

    prepared: Prepared
    values: Values
    mask: Mask | None
    nonfinite_keys: NonFiniteFlags | None
    nonfinite_values: NonFiniteFlags | None
    sizes: tuple[int, int]
    """Of a key and of a value, before they were prepared."""


@runtime_checkable
class HasPairs(Protocol):
    """A memory, of which only the tensors matter here."""

    @property
    def prepared(self) -> Prepared:
        """The prepared keys, by name."""

    @property
    def values(self) -> Values:
        """Their values."""


@runtime_checkable
class Preparer(Protocol):
    """What prepares keys and values: an `Attention` or a `MultiHead`."""

    @property
    def head_shape(self) -> tuple[int, ...]:
        """The axes of heads in its memories."""

    def prepare(self, keys: Tensor, values: Tensor) -> HasPairs:
        """A memory of these pairs."""

    def fingerprint(self) -> str:
        """A hash of what prepared keys depend on."""


def save(memory: SavedMemory, fingerprint: str, path: str | PathLike[str]) -> None:
    """Write to a temporary file, then rename it: the file is complete or absent."""
    tensors = {"values": memory.values}
    tensors |= {f"prepared/{name}": tensor for name, tensor in memory.prepared.items()}
    for name in NONFINITE:
        if (tensor := getattr(memory, name)) is not None:
            tensors[name] = tensor
    mask = None if memory.mask is None else _describe(memory.mask, "mask", tensors)
    # Cloned: safetensors refuses tensors that share storage, as keys and values may.
    copies = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    metadata = {"format": FORMAT, "fingerprint": fingerprint}
    metadata |= {"mask": json.dumps(mask), "sizes": json.dumps(memory.sizes)}
    metadata |= {"digest": _digest(metadata, copies)}
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        safetensors.torch.save_file(copies, temporary, metadata)
        os.replace(temporary, path)
    except (safetensors.SafetensorError, OSError) as error:
        raise MemoryFileError(
            f"{path} cannot be written: {error}. Give a file in a directory that exists."
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


def load(path: str | PathLike[str], owner: Preparer) -> SavedMemory:
    """Read a memory for `owner`, which must have prepared it, or be equal to what did."""
    if not Path(path).is_file():
        raise MemoryFileError(f"there is no file at {path}. Write one first: memory.save(path).")
    metadata, tensors = _read(path)
    if metadata.get("format") != FORMAT:
        raise MemoryFileError(
            f"{path} holds {metadata.get('format', 'other tensors')!r}, not {FORMAT!r}. "
            "Load what memory.save(path) of this version wrote."
        )
    try:
        if metadata["digest"] != _digest(metadata, tensors):
            raise MemoryFileError("its content has another SHA-256 than when it was saved")
        if metadata["fingerprint"] != owner.fingerprint():
            raise ForeignMemoryError(
                f"the keys in {path} were prepared by a score with other options or parameters. "
                "Load that attention's state_dict first, or prepare the keys again with this one."
            )
        return _memory(metadata, tensors, owner)
    except ForeignMemoryError:
        raise
    except (*DAMAGE, RecursionError) as error:
        reason = str(error) if isinstance(error, MemoryFileError) else repr(error)
        raise MemoryFileError(f"{path} is damaged: {reason}. Save the memory again.") from error


def _read(path: str | PathLike[str]) -> tuple[dict[str, str], dict[str, Tensor]]:
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            # Cloned: they are mapped pages of the file, which may be truncated later.
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    except (safetensors.SafetensorError, OSError, *DAMAGE, RuntimeError) as error:
        raise MemoryFileError(
            f"{path} cannot be read as safetensors: {error}. "
            "It is truncated or of another kind: save the memory again."
        ) from error
    return metadata, tensors


def _digest(metadata: Mapping[str, str], tensors: Mapping[str, Tensor]) -> str:
    """A hash of all that a file holds."""
    rest = {name: text for name, text in metadata.items() if name != "digest"}
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _memory(metadata: dict[str, str], tensors: dict[str, Tensor], owner: Preparer) -> SavedMemory:
    """The memory, all of it checked; raise one of `DAMAGE` if it is no memory of `owner`."""
    values = tensors.pop("values")
    nonfinite_keys, nonfinite_values = (tensors.pop(name, None) for name in NONFINITE)
    names = [name for name in tensors if name.startswith("prepared/")]
    prepared = {name.removeprefix("prepared/"): tensors.pop(name) for name in names}
    key_size, value_size = (_size(size) for size in json.loads(metadata["sizes"]))
    like = _one_pair(owner, values, key_size, value_size)
    _check_prepared(prepared, values, like, len(owner.head_shape))
    for each in (nonfinite_keys, nonfinite_values):
        _check_nonfinite(each, values)
    mask = _read_mask(json.loads(metadata["mask"]), tensors)
    if tensors:
        raise MemoryFileError(f"it holds {', '.join(sorted(tensors))}, which belong to no memory")
    sizes = key_size, value_size
    in_order = {name: prepared[name] for name in like.prepared}
    return SavedMemory(in_order, values, mask, nonfinite_keys, nonfinite_values, sizes)


def _size(given: object) -> int:
    if type(given) is not int or not 0 <= given <= MAX_SIZE:
        raise MemoryFileError(f"a size is {shown(given)}, not a number up to {MAX_SIZE}")
    return given


def _one_pair(owner: Preparer, values: Tensor, key_size: int, value_size: int) -> HasPairs:
    """A memory of one pair by the same owner: what a file holds must have its names and sizes."""
    parameters = owner.parameters() if isinstance(owner, nn.Module) else iter(())
    device = next((parameter.device for parameter in parameters), values.device)
    with torch.no_grad(), autocast_disabled(device.type):
        pair = (torch.zeros(1, size, dtype=values.dtype) for size in (key_size, value_size))
        return owner.prepare(*(each.to(device) for each in pair))


def _check_prepared(prepared: dict[str, Tensor], values: Tensor, like: HasPairs, axes: int) -> None:
    """Raise unless values and prepared keys have the names, dtypes and sizes of `like`."""
    if set(prepared) != set(like.prepared):
        raise MemoryFileError(f"it has {', '.join(sorted(prepared)) or 'nothing'} of the keys")
    if values.ndim < 2 + axes or values.shape[-1] != like.values.shape[-1]:
        raise MemoryFileError(f"its values have shape {tuple(values.shape)}")
    if values.dtype not in FLOATS or values.dtype != like.values.dtype:
        raise MemoryFileError(f"its values are {values.dtype}")
    for name, tensor in {**prepared, "values": values}.items():
        fresh = like.values if name == "values" else like.prepared[name]
        inner = slice(-2 - axes, -2)
        if (
            tensor.dtype != fresh.dtype
            or tensor.ndim != values.ndim
            or tensor.shape[-2:] != (values.shape[-2], fresh.shape[-1])
            or tensor.shape[inner] != fresh.shape[inner]
            or not broadcasts(tensor.shape[:-2], values.shape[:-2])
        ):
            raise MemoryFileError(
                f"its {name} have shape {tuple(tensor.shape)} in {tensor.dtype}, "
                f"beside values {tuple(values.shape)} in {values.dtype}"
            )


def _check_nonfinite(flags: Tensor | None, values: Tensor) -> None:
    if flags is None:
        return
    fits = flags.dtype == torch.bool and flags.shape[-2:] == (1, values.shape[-2])
    if not fits or not broadcasts_to(flags.shape[:-2], values.shape[:-2]):
        raise MemoryFileError(
            f"its flags of non-finite pairs have shape {tuple(flags.shape)} in {flags.dtype}"
        )


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


def _read_mask(described: Any, tensors: dict[str, Tensor]) -> Mask | None:
    """The mask, built by its constructor, which checks the fields."""
    if described is None:
        return None
    fields = {name: _read_mask_parts(value, tensors) for name, value in described["fields"].items()}
    return MASKS[described["kind"]](**fields)


def _read_mask_parts(value: Any, tensors: dict[str, Tensor]) -> Any:
    if not isinstance(value, dict):
        return value
    return tensors.pop(value["tensor"]) if "tensor" in value else _read_mask(value, tensors)


def _lengths(limits: Tensor) -> Mask:
    if limits.shape[-2:] != (1, 1):
        raise MemoryFileError(f"a mask has lengths of shape {tuple(limits.shape)}")
    return Lengths(limits[..., 0, 0])


def _blocks(key_blocks: Tensor, query_blocks: Tensor | None) -> Mask:
    if key_blocks.shape[-2] != 1 or (query_blocks is not None and query_blocks.shape[-1] != 1):
        raise MemoryFileError(f"a mask has blocks of shape {tuple(key_blocks.shape)}")
    return Blocks(key_blocks[..., 0, :], None if query_blocks is None else query_blocks[..., 0])


def _inner(mask: object) -> Mask:
    if not isinstance(mask, Mask):
        raise MemoryFileError(f"{shown(mask)} is in the place of a mask")
    return mask


def _remapped(inner: Mask, source: Tensor, keys: int, fresh: bool) -> Mask:
    is_index = source.dtype == torch.int64 and source.ndim == 2 and source.shape[0] == 1
    has_options = type(keys) is int and keys >= 0 and type(fresh) is bool
    if not is_index or not has_options or (source.numel() and not int(source.min()) >= -1):
        raise MemoryFileError("a mask does not say where its keys have moved")
    if source.numel() and int(source.max()) >= max(1, keys):
        raise MemoryFileError(f"a mask has key {int(source.max())} of {keys}")
    return RemappedMask(_inner(inner), source, keys, fresh)


MASKS: dict[str, Callable[..., Mask]] = {
    "And": lambda left, right: And(_inner(left), _inner(right)),
    "Blocks": _blocks,
    "Causal": Causal,
    "Dense": Dense,
    "Lengths": _lengths,
    "Not": lambda inner: Not(_inner(inner)),
    "Or": lambda left, right: Or(_inner(left), _inner(right)),
    "Prefix": Prefix,
    "RemappedMask": _remapped,
    "Window": Window,
}
"""Each kind of mask, built from the fields that were saved."""
