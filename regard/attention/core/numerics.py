"""Arithmetic of all kernels: in float32 at least, and without copies of what broadcasts."""

import torch
from torch import Tensor

from regard.attention.core.tracing import is_concrete

MAX_TERMS = 1 << 16
"""Of more terms, torch's sums of floats lose digits on processors with narrow vectors."""


def upcast(tensor: Tensor) -> Tensor:
    """The tensor in float32 at least: softmax and sums are never computed in less."""
    half = tensor.dtype in (torch.bfloat16, torch.float16)
    return tensor.float() if half else tensor


def broadcast_batch(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    """The batch axes of two tensors, broadcast: as many, and equal or 1 on one side.

    `torch.broadcast_shapes` gives the same, but takes longer than a small read.
    """
    if left == right:
        return tuple(left)
    return tuple(b if a == 1 else a for a, b in zip(left, right, strict=True))


def matmul(left: Tensor, right: Tensor, scale: float = 1.0) -> Tensor:
    """`left @ right · scale`, where `right` may broadcast along batch axes (size 1).

    `torch.matmul` copies what it broadcasts: 8 beams over one source cost 8 sources. Here the
    broadcast axes become rows of `left`, those of grouped heads too.
    """
    if left.shape[-1] > MAX_TERMS:
        parts = zip(left.split(MAX_TERMS, -1), right.split(MAX_TERMS, -2), strict=True)
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
    """The product with its scale in one pass; with a gradient, backward would scale twice."""
    if torch.is_grad_enabled() or left.ndim < 3:
        return (left * scale) @ right
    batch, unused = left.shape[:-2], left.new_empty(1, 1, 1)
    flat = left.flatten(0, -3), right.flatten(0, -3)
    return torch.baddbmm(unused, flat[0], flat[1], beta=0, alpha=scale).unflatten(0, batch)


def softmax(scores: Tensor, allowed: Tensor | None) -> Tensor:
    """Softmax over the keys that may be read; exact zeros elsewhere, and in empty rows."""
    if allowed is None:
        return _renormalize(scores.softmax(-1))
    hidden = ~allowed
    if is_concrete(hidden) and not hidden.all(-1).any():
        return _renormalize(scores.masked_fill(hidden, -torch.inf).softmax(-1))
    # A row of nothing but −inf is NaN. Softmax cannot tell "far below" from "masked", so masked
    # keys are zeroed after it.
    low = torch.finfo(scores.dtype).min
    return _renormalize(scores.masked_fill(hidden, low).softmax(-1)).masked_fill(hidden, 0.0)


def _renormalize(weights: Tensor) -> Tensor:
    """Weights that sum to 1 over very many keys, too.

    torch's softmax accumulates a row in as many floats as a vector register has: over a million
    keys with similar scores it loses all but four digits. Its `sum` adds pairwise.
    """
    if weights.shape[-1] <= MAX_TERMS:
        return weights
    return weights / weights.sum(-1, keepdim=True)


def log_softmax(scores: Tensor, allowed: Tensor | None) -> Tensor:
    """Logarithm of `softmax`, with 0 in the place of −∞ where a key is masked."""
    if allowed is None:
        return scores.log_softmax(-1)
    low = torch.finfo(scores.dtype).min
    return scores.masked_fill(~allowed, low).log_softmax(-1).masked_fill(~allowed, 0.0)
