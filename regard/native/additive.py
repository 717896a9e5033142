"""Additive scores of projected queries and keys, and their backward: vᵀ tanh(q + k).

tanh(a + b) = 1 − 2 / (1 + e^2a · e^2b): the exponentials are computed once for each query and key.
"""

from typing import NamedTuple

from torch import Tensor

from regard.native import loader, parallel
from regard.native.errors import KernelError
from regard.native.signatures import DONE, NO_MEMORY

VECTORS = -1.0


class AdditiveMethod(NamedTuple):
    """What additive scores are computed from, and how their backward sums."""

    max_abs: float
    """max |a| + max |b| of the vectors whose exponentials are given.

    Or `VECTORS`: the vectors are given, and C computes the exponentials.
    """

    separate_adds: bool
    """Is backward faster with separate additions than with fused multiply-adds? On AMD it is."""


def reciprocal_group(max_abs: float) -> int:
    """How many elements share a reciprocal at this max |a| + max |b|; 0 if e^2x overflows."""
    return int(loader.require().regard_reciprocal_group(max_abs))


def exponentials(vectors: Tensor, width: int) -> tuple[Tensor, float]:
    """e^2x, zero-padded to the width, and the largest |x|; NaN if there is one."""
    size = vectors.shape[-1]
    vectors = vectors.contiguous()
    result = vectors.new_empty(*vectors.shape[:-1], width)
    rows = vectors.numel() // max(1, size)
    max_abs = loader.require().regard_exponentials(
        vectors.data_ptr(), result.data_ptr(), rows, size, width, parallel.threads(vectors.numel())
    )
    return result, float(max_abs)


def additive_scores(
    queries: Tensor, keys: Tensor, v: Tensor, which: Tensor, scores: Tensor, how: AdditiveMethod
) -> bool:
    """Fill `scores`, `(items, rows, keys)`; False if vectors were given and are out of range.

    Queries are `(items, rows, width)`, a block of the rows of a contiguous tensor.
    """
    items, rows, width = queries.shape
    status = loader.require().regard_additive_scores(
        queries.data_ptr(), keys.data_ptr(), v.data_ptr(), which.data_ptr(), scores.data_ptr(),
        items, rows, keys.shape[-2], width, queries.stride(0), how.max_abs,
        parallel.threads(scores.numel() * width),
    )  # fmt: skip
    return _in_range(queries, status)


def additive_backward(
    queries: Tensor, keys: Tensor, v: Tensor, which: Tensor, grad_scores: Tensor,
    grads: tuple[Tensor, Tensor, Tensor], how: AdditiveMethod, *, overwrite: bool,
) -> bool:  # fmt: skip
    """Write the gradients of these queries, and add to those of all keys and of v.

    The latter two are written, too, if `overwrite`. False if vectors were given and are out of
    range; then the gradients are undefined.
    """
    items, rows, width = queries.shape
    status = loader.require().regard_additive_backward(
        queries.data_ptr(), keys.data_ptr(), v.data_ptr(), which.data_ptr(),
        grad_scores.data_ptr(), *(each.data_ptr() for each in grads),
        items, rows, keys.shape[-2], width, queries.stride(0), how.max_abs,
        int(how.separate_adds), int(overwrite), parallel.threads(grad_scores.numel() * width),
    )  # fmt: skip
    return _in_range(queries, status)


def _in_range(queries: Tensor, status: int) -> bool:
    if status == NO_MEMORY:
        items, rows, _ = queries.shape
        raise KernelError(
            f"out of memory for {items} × {rows} queries on so many threads. "
            "Use fewer: torch.set_num_threads(1)."
        )
    return status == DONE
