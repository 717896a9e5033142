"""What may come in: shapes, dtypes and devices are checked here, and nowhere else."""

from collections.abc import Iterable

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn import Parameter

from regard.attention.core.errors import DeviceError, DtypeError, ShapeError, shown
from regard.attention.core.tracing import is_concrete

FLOATS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
"""What attention is computed on; torch has no arithmetic for narrower floats."""


def check_pairs(keys: Tensor, values: Tensor) -> None:
    """Raise unless each key has its value."""
    if _check_alike(keys, values) and keys.ndim > 1 and keys.shape[:-1] == values.shape[:-1]:
        return
    check_floats("keys", keys)
    check_floats("values", values)
    _same_device("keys", keys, "values", values)
    _same_dtype("keys", keys, "values", values)
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
            "Give both the same, or 1 where one serves all."
        )
    if keys.shape[-2] != values.shape[-2]:
        needed = (*values.shape[:-2], keys.shape[-2])
        raise ShapeError(
            f"keys have {keys.shape[-2]} positions but values have {values.shape[-2]} ({shapes}). "
            f"Each key needs its value: pass values of shape {_open(needed)}."
        )


def check_added(keys: Tensor, values: Tensor, old: Tensor) -> None:
    """Raise unless new pairs fit a memory with these old values."""
    check_pairs(keys, values)
    _same_device("the new pairs", values, "the memory", old)
    if not torch.is_autocast_enabled(values.device.type):
        _same_dtype("the new pairs", values, "the memory", old)


def as_queries(queries: Tensor, values: Tensor, batch: tuple[int, ...]) -> tuple[Tensor, bool]:
    """The queries as a sequence, for a memory with these values and this batch; was it one vector?

    Raise unless they fit.
    """
    if _check_alike(queries, values) and queries.shape[:-2] == batch and queries.ndim > 1:
        return queries, False
    check_floats("queries", queries)
    _same_device("queries", queries, "keys and values", values)
    bare = queries.ndim == 1 and not batch
    queries = queries[None] if bare else queries
    if torch.is_autocast_enabled(queries.device.type):
        queries = queries.to(values.dtype)
    _same_dtype("queries", queries, "keys and values", values)
    _check_batch(queries, batch)
    return queries, bare


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
            f"Give queries of shape {_open((*batch, 'query'))}, 1 where one serves all."
        )
    if not broadcasts(queries.shape[:-2], batch):
        raise ShapeError(
            f"queries are for a batch of {tuple(queries.shape[:-2])} but the keys for {batch}. "
            "Give both the same batch, or 1 where one serves all."
        )


def check_bias(bias: Tensor, queries: Tensor) -> None:
    """Raise unless the bias can be added to scores of these queries."""
    if not isinstance(bias, Tensor) or bias.dtype not in FLOATS:
        given = bias.dtype if isinstance(bias, Tensor) else shown(bias)
        raise DtypeError(
            f"bias is {given}; it is added to the scores. "
            "Pass a tensor of floats, and what may be read as mask=…, a mask or booleans."
        )
    _same_device("biases", bias, "queries", queries)
    if bias.dtype == torch.float64:
        _same_dtype("biases", bias, "queries", queries)


def check_bias_shape(bias: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The bias, if it fits `(*batch, query, key)`."""
    own = tuple(bias.shape)
    if len(own) != len(shape) or any(a not in (1, b) for a, b in zip(own, shape, strict=True)):
        raise ShapeError(
            f"bias has shape {own} but the batch, queries and keys are {tuple(shape)}. "
            "Give it these axes, each of that size, or 1 to serve all."
        )
    return bias


def copy_parameter(tensor: Tensor) -> Tensor:
    """The tensor, a parameter copied: what a reading holds must not follow the optimiser."""
    if type(tensor) is Tensor:  # to ask whether it is a parameter takes longer
        return tensor
    return tensor.clone() if isinstance(tensor, Parameter) else tensor


def autocast(tensor: Tensor) -> Tensor:
    """The tensor as autocast wants it, where autocast is on; float64 is left alone."""
    kind = tensor.device.type
    if not torch.is_autocast_enabled(kind) or tensor.dtype == torch.float64:
        return tensor
    return tensor.to(torch.get_autocast_dtype(kind)) if tensor.is_floating_point() else tensor


def as_index(
    name: str, index: Tensor | Iterable[int], total: int, device: torch.device
) -> Int[Tensor, " place"]:
    """Places among so many, counted from the first; booleans, one for each place, say which.

    Raise if they are anything else, or not there.
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
    places = given.reshape(-1).long()
    outside = (places < -total) | (places >= total)
    if is_concrete(places) and outside.any():
        raise ShapeError(
            f"{name} {places.tolist()} were given but there are {total}. "
            f"They go from 0 to {total - 1}, or from the end, from −1."
        )
    return places % max(1, total)


def check_floats(name: str, tensor: Tensor) -> None:
    """Raise unless it is a dense tensor of floats that torch computes with."""
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
            f"torch.nested.to_padded_tensor({name}, 0.0), and hide that: masks.Lengths(lengths)."
        )
    if tensor.layout != torch.strided:
        raise DtypeError(
            f"{name} are {tensor.layout}; attention is computed on dense tensors. "
            f"Convert them: {name}.to_dense()."
        )


def _check_alike(one: Tensor, other: Tensor) -> bool:
    """Are they plain tensors of the same floats in one place? Most are, and need no more checks."""
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


def _same_dtype(first: str, one: Tensor, second: str, other: Tensor) -> None:
    if one.dtype != other.dtype:
        raise DtypeError(
            f"{first} are {one.dtype} but {second} {other.dtype}. "
            f"Convert one: .to({other.dtype}), or use torch.autocast for both."
        )


def _same_device(first: str, one: Tensor, second: str, other: Tensor) -> None:
    if one.device != other.device:
        raise DeviceError(
            f"{first} are on {one.device} but {second} on {other.device}. "
            f"Move one: .to({str(other.device)!r})."
        )


def broadcasts(left: tuple[int, ...], right: tuple[int, ...]) -> bool:
    """Are batch axes as many, and each as large, or 1 on one side?"""
    return len(left) == len(right) and all(
        a == b or 1 in (a, b) for a, b in zip(left, right, strict=True)
    )


def _open(sizes: tuple[int | str, ...]) -> str:
    return "(" + ", ".join([*(str(size) for size in sizes), "…"]) + ")"
