"""Non-finite keys and values: a masked one must reach no output and no gradient.

NaN or inf in a masked key would still reach the parameters, as 0 · NaN in a gradient. So non-finite
keys and values are zeroed before the first parameter multiplies them, and flagged; in the end the
context of each query that may read one is set to NaN, as in plain code. Huge finite numbers may
overflow in products: they are detected, and `attend` then zeroes them row by row where masked.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.attention.core.axes import NonFiniteFlags
from regard.attention.core.numerics import broadcast_batch
from regard.attention.core.tracing import is_concrete
from regard.attention.core.validation import autocast, check_pairs, copy_parameter


@dataclass(slots=True)
class NonFinite:
    """Which keys and which values were non-finite, and are zero now."""

    keys: NonFiniteFlags | None = None
    values: NonFiniteFlags | None = None
    huge: bool = False
    """Are some numbers so large that products with them may overflow?"""

    def zero_keys(self, keys: Tensor) -> Tensor:
        """The keys, as given or prepared, with zeros for the non-finite ones."""
        keys, nonfinite = self._zero(keys)
        self.keys = _either(self.keys, nonfinite)
        return keys

    def zero_values(self, values: Tensor) -> Tensor:
        """The values, with zeros for the non-finite ones."""
        values, nonfinite = self._zero(values)
        self.values = _either(self.values, nonfinite)
        return values

    def insert_head_axes(self, axes: int) -> None:
        """Flags for keys and values that have so many axes of heads."""
        index = (..., *[None] * axes, slice(None), slice(None))
        self.keys = None if self.keys is None else self.keys[index]
        self.values = None if self.values is None else self.values[index]

    def _zero(self, tensor: Tensor) -> tuple[Tensor, NonFiniteFlags | None]:
        concrete = is_concrete(tensor)
        if concrete and _norm(tensor) <= _safe_limit(tensor):
            return tensor, None
        nonfinite = ~tensor.detach().isfinite().all(-1)
        if concrete and not nonfinite.any():
            self.huge = True
            return tensor, None
        zeroed = tensor.masked_fill(nonfinite[..., None], 0.0)
        self.huge = self.huge or is_huge(zeroed)
        return zeroed, nonfinite[..., None, :]


def validate_pairs(
    keys: Tensor, values: Tensor, *, masked: bool
) -> tuple[Tensor, Tensor, NonFinite | None]:
    """Check keys and values, cast them, and zero non-finite ones where some may be masked."""
    check_pairs(keys, values)
    keys, values = copy_parameter(autocast(keys)), copy_parameter(autocast(values))
    if keys.shape[:-2] != values.shape[:-2]:
        keys = keys.expand(*broadcast_batch(keys.shape[:-2], values.shape[:-2]), *keys.shape[-2:])
    if not masked:
        return keys, values, None
    nonfinite = NonFinite()
    return nonfinite.zero_keys(keys), nonfinite.zero_values(values), nonfinite


def zero_nonfinite_queries(queries: Tensor, reads_any: Callable[[], Tensor]) -> Tensor:
    """Zero each fully masked query, if one is huge or non-finite.

    Args:
        queries: `(*batch, query, size)`.
        reads_any: Which queries may read a key, `(*batch, query, 1)`; called only if needed.
    """
    if is_concrete(queries) and _norm(queries) <= _safe_limit(queries):
        return queries
    return torch.where(reads_any(), queries, 0.0)


def is_huge(tensor: Tensor) -> bool:
    """Are some of these finite numbers so large that products with them may overflow?"""
    return is_concrete(tensor) and _norm(tensor) > _safe_limit(tensor)


def _norm(tensor: Tensor) -> float:
    """√Σx² ≥ every |x|; inf or NaN if one x is. One pass, and no copy."""
    at_least = torch.promote_types(tensor.dtype, torch.float32)
    return float(torch.linalg.vector_norm(tensor.detach(), dtype=at_least))


def _safe_limit(tensor: Tensor) -> float:
    """Products of three numbers up to this limit are finite."""
    at_least = torch.promote_types(tensor.dtype, torch.float32)
    return float(torch.finfo(at_least).max ** (1 / 3))


def _either(one: NonFiniteFlags | None, other: NonFiniteFlags | None) -> NonFiniteFlags | None:
    return other if one is None else one if other is None else one | other
