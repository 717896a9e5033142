"""Several heads of one query an item: a Transformer's step, in one call for all heads."""

import ctypes
from collections.abc import Sequence

from torch import Tensor

from regard.native import loader, parallel
from regard.native.errors import KernelError
from regard.native.signatures import POINTER, MultiheadStepArguments


def read_memory(
    queries: Tensor, pairs: Tensor, lengths: Tensor | None, heads: int, weights: Tensor | None
) -> Tensor:
    """What each query reads by scaled dot products, heads side by side.

    Args:
        queries: `(items, …)`, whose first columns count, as many as a key has.
        pairs: `(memories, pair, 2 · size)`, contiguous: keys before values.
        lengths: How many of its pairs each memory shows; all if None.
        heads: How many heads there are.
        weights: `(items, heads, pair)` to be filled, if they are needed.
    """
    memories, count, both = pairs.shape
    args = MultiheadStepArguments(
        pairs=pairs.data_ptr(), lengths=None if lengths is None else lengths.data_ptr(),
        weights=None if weights is None else weights.data_ptr(),
        items_per_memory=max(1, len(queries) // max(1, memories)), heads=heads, count=count,
        head_size=both // 2 // heads,
    )  # fmt: skip
    return _read(args, queries)


def read_past(queries: Tensor, past: Sequence[Tensor], rows: Tensor, heads: int) -> Tensor:
    """The same, of pairs that are read where each step wrote them: a cache that is never copied.

    Args:
        queries: As above.
        past: For each step the pairs of its rows, `(row, 2 · size)`, all of the same stride.
        rows: `(items, step)`: which row of each step is the item's.
        heads: How many heads there are.
    """
    pointers = (POINTER * len(past))(*(each.data_ptr() for each in past))
    rows = rows.contiguous()
    args = MultiheadStepArguments(
        past=ctypes.addressof(pointers), rows=rows.data_ptr(), heads=heads, items_per_memory=1,
        head_size=past[0].shape[-1] // 2 // heads, count=len(past), past_stride=past[0].stride(0),
    )  # fmt: skip
    return _read(args, queries)


def _read(args: MultiheadStepArguments, queries: Tensor) -> Tensor:
    """The context; fills in what does not depend on how the pairs are stored."""
    items, size = len(queries), args.heads * args.head_size
    context = queries.new_empty(items, size)
    args.q, args.q_stride, args.items = queries.data_ptr(), queries.stride(0), items
    args.context, args.scale = context.data_ptr(), max(1, args.head_size) ** -0.5
    running = parallel.threads(items * args.count * 2 * size)
    if loader.require().regard_multihead_step(ctypes.addressof(args), running):
        raise KernelError(f"out of memory while reading {args.count} keys. Free some.")
    return context
