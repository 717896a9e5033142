"""Arithmetic that every kernel shares: wide enough, and without copies of what is shared."""

import torch
from torch import Tensor

from regard.attention.core.tracing import is_concrete

MANY = 1 << 16
"""Of more terms than this torch's sums of floats lose digits, where it keeps few sums at a time."""


def upcast(tensor: Tensor) -> Tensor:
    """The tensor in float32 at least; softmax and sums are never taken in less."""
    narrow = tensor.dtype in (torch.bfloat16, torch.float16)
    return tensor.float() if narrow else tensor


def broadcast_batch(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    """The batch axes of two tensors together: as many, each as large, or 1 on one side.

    `torch.broadcast_shapes` says the same; it takes longer than a small read.
    """
    if left == right:
        return tuple(left)
    return tuple(b if a == 1 else a for a, b in zip(left, right, strict=True))


def matmul(left: Tensor, right: Tensor, scale: float = 1.0) -> Tensor:
    """`left @ right · scale`, where `right` may be shared along batch axes (size 1).

    `torch.matmul` copies what it broadcasts: 8 beams over one source cost 8 sources. Here the
    shared axes become rows of `left`; the same fold serves the grouped keys of several heads.
    """
    if left.shape[-1] > MANY:
        parts = zip(left.split(MANY, -1), right.split(MANY, -2), strict=True)
        return torch.stack([matmul(*part, scale) for part in parts]).sum(0)
    if left.shape[:-2] == right.shape[:-2]:
        return left @ right if scale == 1.0 else _scaled(left, right, scale)
    left = left if scale == 1.0 else left * scale
    axes = range(left.ndim - 2)
    shared = [axis for axis in axes if right.shape[axis] == 1 and left.shape[axis] != 1]
    if not shared:
        return left @ right
    rows = tuple(range(-2 - len(shared), -2))
    folded = left.movedim(shared, rows)
    sizes = folded.shape[rows[0] : -1]
    folded = folded.flatten(rows[0], -2)  # (*own batch, shared × query, size)
    right = right.movedim(shared, rows).flatten(rows[0], -3).squeeze(-3)
    return (folded @ right).unflatten(-2, sizes).movedim(rows, shared)


def _scaled(left: Tensor, right: Tensor, scale: float) -> Tensor:
    """The product and its factor in one pass; with a gradient the factor would be paid twice."""
    if torch.is_grad_enabled() or left.ndim < 3:
        return (left * scale) @ right
    batch, none = left.shape[:-2], left.new_empty(1, 1, 1)
    flat = left.flatten(0, -3), right.flatten(0, -3)
    return torch.baddbmm(none, flat[0], flat[1], beta=0, alpha=scale).unflatten(0, batch)


def softmax(scores: Tensor, allowed: Tensor | None) -> Tensor:
    """Softmax over the keys that may be read; exact zeros elsewhere, and where none may be."""
    if allowed is None:
        return _finite_rows(scores.softmax(-1))
    hidden = ~allowed
    if is_concrete(hidden) and not hidden.all(-1).any():
        return _finite_rows(scores.masked_fill(hidden, -torch.inf).softmax(-1))
    # A row of nothing but −inf is NaN. Softmax cannot tell "far below" from "forbidden", so
    # forbidden keys are zeroed after it.
    low = torch.finfo(scores.dtype).min
    return _finite_rows(scores.masked_fill(hidden, low).softmax(-1)).masked_fill(hidden, 0.0)


def _finite_rows(weights: Tensor) -> Tensor:
    """Weights that sum to 1, though they are many.

    torch's softmax sums a row in as many floats as a register has, each of which goes over all of
    it: over a million keys of like scores it loses all but four digits. Its `sum` adds sums.
    """
    if weights.shape[-1] <= MANY:
        return weights
    return weights / weights.sum(-1, keepdim=True)


def log_softmax(scores: Tensor, allowed: Tensor | None) -> Tensor:
    """Logarithm of `softmax`, with 0 in place of minus infinity where a key is hidden."""
    if allowed is None:
        return scores.log_softmax(-1)
    low = torch.finfo(scores.dtype).min
    return scores.masked_fill(~allowed, low).log_softmax(-1).masked_fill(~allowed, 0.0)
