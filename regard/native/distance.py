"""Distances of all pairs, and softmax reads by them."""

import ctypes
from typing import NamedTuple

from torch import Tensor

from regard.native import loader, parallel
from regard.native.errors import KernelError
from regard.native.signatures import DistanceArguments

GAUSSIAN, INVERSE = range(2)


def squared_distances(queries: Tensor, keys: Tensor, which: Tensor) -> Tensor:
    """‖q − k‖² of `(item, query, size)` and `(memory, key, size)`; item n has memory `which[n]`."""
    queries, keys = queries.contiguous(), keys.contiguous()
    (items, rows, size), count = queries.shape, keys.shape[-2]
    result = queries.new_empty(items, rows, count)
    if loader.require().regard_squared_distances(
        queries.data_ptr(), keys.data_ptr(), which.data_ptr(), result.data_ptr(),
        items, rows, count, size, parallel.threads(result.numel() * size),
    ):  # fmt: skip
        raise KernelError(f"out of memory while comparing with {count} keys. Free some.")
    return result


class Pairwise(NamedTuple):
    """How a query and a key are compared: `GAUSSIAN` or `INVERSE`, and two constants."""

    kind: int
    factor: float
    floor: float = 0.0


def distance_softmax(
    queries: Tensor, pairs: tuple[Tensor, Tensor], which: tuple[Tensor, Tensor], how: Pairwise
) -> Tensor:
    """What `(item, query, size)` read by softmax: `(item, query, value_size)`.

    Args:
        queries: The queries of each item.
        pairs: Keys and values, each `(memory, key, …)`.
        which: Whose keys and whose values each item reads.
        how: How they are compared.
    """
    queries, keys, values = (each.contiguous() for each in (queries, *pairs))
    (items, rows, size), (count, value_size) = queries.shape, values.shape[-2:]
    context = queries.new_empty(items, rows, value_size)
    args = DistanceArguments(
        *(each.data_ptr() for each in (queries, keys, values, *which, context)),
        items, rows, count, size, value_size, how.factor, how.floor, how.kind,
    )  # fmt: skip
    running = parallel.threads(items * rows * count * (size + value_size))
    if loader.require().regard_distance_softmax(ctypes.addressof(args), running):
        raise KernelError(f"out of memory while reading {count} keys. Free some.")
    return context
