"""What a hidden key contains never matters, pair by pair.

NaN or inf in a key that is hidden would still reach the parameters, as 0 · NaN in a gradient. So
whatever is not finite is zeroed before the first parameter sees it, and remembered; queries that
may read it come out NaN in the end, the others are untouched. Finite numbers that are huge overflow
in products with what else there is: they are noticed, and `attend` then hides them row by row.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.attention.core.axes import NonFiniteFlags
from regard.attention.core.tracing import is_concrete


@dataclass(slots=True)
class NonFinite:
    """Which keys and which values were not finite, and are zero now."""

    keys: NonFiniteFlags | None = None
    values: NonFiniteFlags | None = None
    huge: bool = False
    """Are some so large that products with them may overflow?"""

    def zero_keys(self, keys: Tensor) -> Tensor:
        """The keys, or what was made of them, with zeros for those that are not finite."""
        keys, faulty = self._zero(keys)
        self.keys = _either(self.keys, faulty)
        return keys

    def zero_values(self, values: Tensor) -> Tensor:
        """The same of values."""
        values, faulty = self._zero(values)
        self.values = _either(self.values, faulty)
        return values

    def over_heads(self, axes: int) -> None:
        """From here on, keys and values have so many axes of heads."""
        place = (..., *[None] * axes, slice(None), slice(None))
        self.keys = None if self.keys is None else self.keys[place]
        self.values = None if self.values is None else self.values[place]

    def _zero(self, tensor: Tensor) -> tuple[Tensor, NonFiniteFlags | None]:
        looks = is_concrete(tensor)
        if looks and _length(tensor) <= _all_finite(tensor):
            return tensor, None
        faulty = ~tensor.detach().isfinite().all(-1)
        if looks and not faulty.any():
            self.huge = True
            return tensor, None
        clean = tensor.masked_fill(faulty[..., None], 0.0)
        self.huge = self.huge or is_huge(clean)
        return clean, faulty[..., None, :]


def zero_nonfinite_queries(queries: Tensor, reads: Callable[[], Tensor]) -> Tensor:
    """Zero each query that may read nothing, if one is huge or not finite.

    Args:
        queries: `(*batch, query, size)`.
        reads: Says who reads something; called only if need be.
    """
    if is_concrete(queries) and _length(queries) <= _all_finite(queries):
        return queries
    return torch.where(reads(), queries, 0.0)


def is_huge(tensor: Tensor) -> bool:
    """Are some of these finite numbers so large that products with them may overflow?"""
    return is_concrete(tensor) and _length(tensor) > _all_finite(tensor)


def _length(tensor: Tensor) -> float:
    """√Σx², which no |x| exceeds; inf or NaN if one x is. One pass, and no copy."""
    at_least = torch.promote_types(tensor.dtype, torch.float32)
    return float(torch.linalg.vector_norm(tensor.detach(), dtype=at_least))


def _all_finite(tensor: Tensor) -> float:
    """Products of three numbers up to this one are finite."""
    at_least = torch.promote_types(tensor.dtype, torch.float32)
    return float(torch.finfo(at_least).max ** (1 / 3))


def _either(one: NonFiniteFlags | None, other: NonFiniteFlags | None) -> NonFiniteFlags | None:
    return other if one is None else one if other is None else one | other
