"""Check the shapes, dtypes and devices of all inputs; nothing else does."""

from collections.abc import Iterable

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn import Parameter

from regard.attention.core.errors import DeviceError, DtypeError, ShapeError, shown
from regard.attention.core.tracing import is_concrete

FLOATS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
"""The dtypes of attention; torch has no arithmetic for float8."""


def check_pairs(keys: Tensor, values: Tensor) -> None:
    """Raise unless each key has its value."""
    if _are_plain(keys, values) and keys.ndim > 1 and keys.shape[:-1] == values.shape[:-1]:
        return
    check_floats("keys", keys)
    check_floats("values", values)
    _check_same_device("keys", keys, "values", values)
    _check_same_dtype("keys", keys, "values", values)
    for name, tensor in (("keys", keys), ("values", values)):
        if tensor.ndim < 2:
            raise ShapeError(
                f"{name} have shape {tuple(tensor.shape)}; they are (*batch, key, size). "
                f"Add the axis of the keys: {name}[None, :] for one key."
            )
    shapes = f"keys {tuple(keys.shape)}, values {tuple(values.shape)}"
    if keys.ndim != values.ndim or not broadcasts(keys.shape[:-2], values.shape[:-2]):
        raise ShapeError(
            f"keys and values have different batch axes ({shapes}). "
            "Give both the same, or 1 to broadcast."
        )
    if keys.shape[-2] != values.shape[-2]:
        needed = (*values.shape[:-2], keys.shape[-2])
        raise ShapeError(
            f"keys have {keys.shape[-2]} positions but values have {values.shape[-2]} ({shapes}). "
            f"Each key needs its value: pass values of shape {_open_shape(needed)}."
        )


def check_new_pairs(keys: Tensor, values: Tensor, memory_values: Tensor) -> None:
    """Raise unless new pairs fit a memory with these values."""
    check_pairs(keys, values)
    _check_same_device("the new pairs", values, "the memory", memory_values)
    if not torch.is_autocast_enabled(values.device.type):
        _check_same_dtype("the new pairs", values, "the memory", memory_values)


def as_queries(queries: Tensor, values: Tensor, batch: tuple[int, ...]) -> tuple[Tensor, bool]:
    """The queries as a sequence, and whether they were a bare vector; raise unless they fit.

    Args:
        queries: `(*batch, query, size)`, or a vector.
        values: Those of the memory.
        batch: The memory's, without heads.
    """
    if _are_plain(queries, values) and queries.shape[:-2] == batch and queries.ndim > 1:
        return queries, False
    check_floats("queries", queries)
    _check_same_device("queries", queries, "keys and values", values)
    is_vector = queries.ndim == 1 and not batch
    queries = queries[None] if is_vector else queries
    if torch.is_autocast_enabled(queries.device.type):
        queries = queries.to(values.dtype)
    _check_same_dtype("queries", queries, "keys and values", values)
    _check_batch(queries, batch)
    return queries, is_vector


def _check_batch(queries: Tensor, batch: tuple[int, ...]) -> None:
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
            f"Give queries of shape {_open_shape((*batch, 'query'))}, or 1 to broadcast."
        )
    if not broadcasts(queries.shape[:-2], batch):
        raise ShapeError(
            f"queries are for a batch of {tuple(queries.shape[:-2])} but the keys for {batch}. "
            "Give both the same batch, or 1 to broadcast."
        )


def check_bias(bias: Tensor, queries: Tensor) -> None:
    """Raise unless the bias can be added to scores of these queries."""
    if not isinstance(bias, Tensor) or bias.dtype not in FLOATS:
        given = bias.dtype if isinstance(bias, Tensor) else shown(bias)
        raise DtypeError(
            f"bias is {given}; it is added to the scores. "
            "Pass a tensor of floats, and what may be read as mask=…, a mask or booleans."
        )
    _check_same_device("biases", bias, "queries", queries)
    if bias.dtype == torch.float64:
        _check_same_dtype("biases", bias, "queries", queries)


def check_bias_shape(bias: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The bias, if it fits `(*batch, query, key)`."""
    if not broadcasts_to(bias.shape, shape):
        raise ShapeError(
            f"bias has shape {tuple(bias.shape)} but the batch, queries and keys are "
            f"{tuple(shape)}. Give it these axes, each of that size, or 1 to broadcast."
        )
    return bias


def copy_parameter(tensor: Tensor) -> Tensor:
    """The tensor; a copy if it is a parameter, whose later updates a reading must not see."""
    if type(tensor) is Tensor:  # isinstance of a parameter takes longer
        return tensor
    return tensor.clone() if isinstance(tensor, Parameter) else tensor


def autocast(tensor: Tensor) -> Tensor:
    """The tensor in autocast's dtype, inside autocast; float64 stays."""
    kind = tensor.device.type
    if not torch.is_autocast_enabled(kind) or tensor.dtype == torch.float64:
        return tensor
    return tensor.to(torch.get_autocast_dtype(kind)) if tensor.is_floating_point() else tensor


def as_index(
    name: str, index: Tensor | Iterable[int], total: int, device: torch.device
) -> Int[Tensor, " index"]:
    """Indices below `total`, none negative, from a list, a tensor or a boolean for each.

    Raise if they are anything else, or out of range.
    """
    try:
        given = torch.as_tensor(index if isinstance(index, Tensor) else list(index))
    except (TypeError, ValueError, RuntimeError):
        raise DtypeError(
            f"{name} are {shown(index)}. Give whole numbers: a list, such as [0, 2], or a tensor."
        ) from None
    given = given.to(device) if given.numel() else given.to(device, torch.long)
    if given.dtype == torch.bool and given.shape == (total,):
        return given.nonzero().flatten()
    if given.is_floating_point() or given.is_complex() or given.dtype == torch.bool:
        raise DtypeError(
            f"{name} are {given.dtype} of shape {tuple(given.shape)}. Give whole numbers, such as "
            f"[0, 2], or one boolean for each of the {total}."
        )
    if given.ndim > 1:
        raise ShapeError(
            f"{name} have shape {tuple(given.shape)}; they are the same for all items of the "
            "batch. Give them on one axis, such as [0, 2]."
        )
    indices = given.reshape(-1).long()
    outside = (indices < -total) | (indices >= total)
    if is_concrete(indices) and outside.any():
        raise ShapeError(
            f"{name} {indices.tolist()} were given but there are {total}. "
            f"They go from 0 to {total - 1}, or from the end, from −1."
        )
    return indices % max(1, total)


def check_floats(name: str, tensor: Tensor) -> None:
    """Raise unless it is a dense tensor of one of `FLOATS`."""
    if not isinstance(tensor, Tensor):
        raise DtypeError(
            f"{name} are of type {type(tensor).__name__}. Pass a tensor: torch.as_tensor(…)."
        )
    if tensor.dtype not in FLOATS:
        how = (
            f"torch.view_as_real({name}).flatten(-2)" if tensor.is_complex() else f"{name}.float()"
        )
        raise DtypeError(
            f"{name} are {tensor.dtype}; attention is computed on floating-point numbers. "
            f"Convert them, {how}, or embed them first."
        )
    if tensor.is_nested:
        raise DtypeError(
            f"{name} are nested; attention is computed on dense tensors. Pad them, "
            f"torch.nested.to_padded_tensor({name}, 0.0), and mask that: masks.Lengths(lengths)."
        )
    if tensor.layout != torch.strided:
        raise DtypeError(
            f"{name} are {tensor.layout}; attention is computed on dense tensors. "
            f"Convert them: {name}.to_dense()."
        )


def _are_plain(one: Tensor, other: Tensor) -> bool:
    """Are they plain tensors of one dtype on the CPU? Most are, and need no more checks."""
    return (
        type(one) is type(other) is Tensor
        and one.dtype == other.dtype
        and one.dtype in FLOATS
        and one.layout == other.layout == torch.strided
        and one.is_cpu
        and other.is_cpu
        and not one.is_nested
        and not other.is_nested
        and not torch.is_autocast_enabled("cpu")
    )


def _check_same_dtype(first: str, one: Tensor, second: str, other: Tensor) -> None:
    if one.dtype != other.dtype:
        raise DtypeError(
            f"{first} are {one.dtype} but {second} {other.dtype}. "
            f"Convert one: .to({other.dtype}), or use torch.autocast for both."
        )


def _check_same_device(first: str, one: Tensor, second: str, other: Tensor) -> None:
    if one.device != other.device:
        raise DeviceError(
            f"{first} are on {one.device} but {second} on {other.device}. "
            f"Move one: .to({str(other.device)!r})."
        )


def broadcasts(left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    """Do two batches broadcast: as many axes, each as large, or 1 on one side?"""
    return len(left) == len(right) and all(
        a == b or 1 in (a, b) for a, b in zip(left, right, strict=True)
    )


def broadcasts_to(own: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Are there as many axes, each as large as in `shape`, or 1?"""
    return len(own) == len(shape) and all(a in (1, b) for a, b in zip(own, shape, strict=True))


def _open_shape(sizes: tuple[int | str, ...]) -> str:
    return "(" + ", ".join([*(str(size) for size in sizes), "…"]) + ")"
