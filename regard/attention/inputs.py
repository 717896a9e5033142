"""What may come in: shapes, dtypes and devices are checked here, and nowhere else."""

from collections.abc import Mapping

import torch
from torch import Tensor

from regard.attention.errors import DeviceError, DtypeError, MaskError, ShapeError
from regard.attention.masks import Dense, Mask


def check_pairs(keys: Tensor, values: Tensor) -> None:
    """Raise unless each key has its value."""
    _floats({"keys": keys, "values": values})
    for name, tensor in (("keys", keys), ("values", values)):
        if tensor.ndim < 2:
            raise ShapeError(
                f"{name} have shape {tuple(tensor.shape)}; they are (*batch, key, size). "
                f"Add the axis of the keys: {name}[None, :] for one key."
            )
    shapes = f"keys {tuple(keys.shape)}, values {tuple(values.shape)}"
    if keys.ndim != values.ndim or not _broadcast(keys.shape[:-2], values.shape[:-2]):
        raise ShapeError(
            f"keys and values have different batch axes ({shapes}). "
            "Give both the same, or 1 where one serves all."
        )
    if keys.shape[-2] != values.shape[-2]:
        needed = (*values.shape[:-2], keys.shape[-2])
        raise ShapeError(
            f"keys have {keys.shape[-2]} positions but values have {values.shape[-2]} ({shapes}). "
            f"Each key needs its value: pass values of shape {_open(needed)}."
        )


def check_queries(queries: Tensor, values: Tensor, batch: tuple[int, ...]) -> None:
    """Raise unless the queries fit a memory with these values and this batch."""
    _floats({"queries": queries, "the memory": values})
    rank = len(batch) + 2
    given = tuple(queries.shape)
    if queries.ndim == rank - 1:
        raise ShapeError(
            f"queries have shape {given} but the keys have {rank} axes, (*batch, key, size). "
            "Add the axis of the queries: queries[..., None, :] for one query an item, and take "
            "it off the context: context[..., 0, :]."
        )
    if queries.ndim != rank:
        raise ShapeError(
            f"queries have {queries.ndim} axes, {given}, but the keys have {rank}. "
            f"Give queries of shape {_open((*batch, 'query'))}, 1 where one serves all."
        )
    if not _broadcast(queries.shape[:-2], batch):
        raise ShapeError(
            f"queries are for a batch of {tuple(queries.shape[:-2])} but the keys for {batch}. "
            "Give both the same batch, or 1 where one serves all."
        )


def check_bias(bias: Tensor, shape: tuple[int, ...], device: torch.device) -> None:
    """Raise unless the bias fits `(*batch, query, key)`."""
    if not bias.dtype.is_floating_point:
        raise DtypeError(
            f"bias is {bias.dtype}; it is added to the scores. "
            "Pass floats, and what may be read as mask=…, a boolean."
        )
    if bias.device != device:
        raise DeviceError(f"bias is on {bias.device}, the queries on {device}. Move one of them.")
    own = tuple(bias.shape)
    if len(own) != len(shape) or any(a not in (1, b) for a, b in zip(own, shape, strict=True)):
        raise ShapeError(
            f"bias has shape {own} but the batch, queries and keys are {tuple(shape)}. "
            "Give it these axes, each of that size, or 1 to serve all."
        )


def as_mask(mask: Mask | Tensor | None) -> Mask | None:
    """A mask as it is; a boolean tensor wrapped."""
    if mask is None or isinstance(mask, Mask):
        return mask
    if isinstance(mask, Tensor):
        return Dense(mask)
    raise MaskError(
        f"{mask!r} is not a mask. Pass a boolean tensor, True = may read, or one of "
        "regard.masks, such as masks.Causal() & masks.Lengths(lengths)."
    )


def autocast(tensor: Tensor) -> Tensor:
    """The tensor as autocast wants it, where autocast is on; float64 is left alone."""
    kind = tensor.device.type
    if not torch.is_autocast_enabled(kind) or tensor.dtype == torch.float64:
        return tensor
    return tensor.to(torch.get_autocast_dtype(kind)) if tensor.is_floating_point() else tensor


def _floats(tensors: Mapping[str, Tensor]) -> None:
    """Raise unless these are tensors of one floating dtype on one device."""
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise DtypeError(
                f"{name} are of type {type(tensor).__name__}. Pass a tensor: torch.as_tensor(…)."
            )
        if not tensor.is_floating_point():
            raise DtypeError(
                f"{name} are {tensor.dtype}; attention is computed on floating-point numbers. "
                f"Convert them, {name}.float(), or embed them first."
            )
    (first, one), (second, other) = tensors.items()
    if one.dtype != other.dtype:
        raise DtypeError(
            f"{first} are {one.dtype} but {second} {other.dtype}. "
            f"Convert one: .to({one.dtype}), or use torch.autocast for both."
        )
    if one.device != other.device:
        raise DeviceError(
            f"{first} are on {one.device} but {second} on {other.device}. Move one: .to(device)."
        )


def _broadcast(left: torch.Size, right: tuple[int, ...]) -> bool:
    return len(left) == len(right) and all(
        a == b or 1 in (a, b) for a, b in zip(left, right, strict=True)
    )


def _open(sizes: tuple[int | str, ...]) -> str:
    return "(" + ", ".join([*(str(size) for size in sizes), "…"]) + ")"
