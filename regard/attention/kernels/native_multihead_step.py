"""Several heads that one query an item asks: heads.c, for a Transformer's step."""

import ctypes
from collections.abc import Sequence

from torch import Tensor

from regard.attention.core.errors import KernelError
from regard.attention.kernels import native
from regard.attention.kernels.signatures import POINTER, HeadsArguments


def heads(
    queries: Tensor, pairs: Tensor, lengths: Tensor | None, count: int, weights: Tensor | None
) -> Tensor:
    """What each query reads by scaled dot products, in each of so many heads, side by side.

    Args:
        queries: `(items, …)`, of which the first numbers count, as many as a key has.
        pairs: `(memories, pair, 2 · size)`, contiguous: keys before values.
        lengths: How many of its pairs each memory shows; all if None.
        count: How many heads there are.
        weights: `(items, heads, pair)` to be filled, if somebody asks for them.
    """
    memories, known, both = pairs.shape
    told = HeadsArguments(
        pairs=pairs.data_ptr(), lengths=None if lengths is None else lengths.data_ptr(),
        weights=None if weights is None else weights.data_ptr(),
        share=max(1, len(queries) // max(1, memories)), heads=count, count=known,
        size=both // 2 // count,
    )  # fmt: skip
    return _headed(told, queries)


def past_heads(queries: Tensor, past: Sequence[Tensor], rows: Tensor, count: int) -> Tensor:
    """The same, of pairs that lie where they were made.

    Args:
        queries: As above.
        past: For each step the pairs of its rows, `(row, 2 · size)`, all in the same stride.
        rows: `(items, step)`: which of a step's rows is an item's own.
        count: How many heads there are.
    """
    pointers = (POINTER * len(past))(*(each.data_ptr() for each in past))
    rows = rows.contiguous()
    told = HeadsArguments(
        past=ctypes.addressof(pointers), rows=rows.data_ptr(), heads=count, share=1,
        size=past[0].shape[-1] // 2 // count, count=len(past), apart=past[0].stride(0),
    )  # fmt: skip
    return _headed(told, queries)


def _headed(told: HeadsArguments, queries: Tensor) -> Tensor:
    """The context, by all that is told of pairs."""
    items, wide = len(queries), told.heads * told.size
    context = queries.new_empty(items, wide)
    told.q, told.stride, told.items = queries.data_ptr(), queries.stride(0), items
    told.context, told.scale = context.data_ptr(), max(1, told.size) ** -0.5
    running = native.threads(items * told.count * 2 * wide)
    if native.built().regard_heads(ctypes.addressof(told), running):
        raise KernelError(f"there was no memory to read {told.count} keys with. Free some.")
    return context
