"""What a hidden key contains never matters, pair by pair.

NaN or inf in a key that is hidden would still reach the parameters, as 0 · NaN in a gradient. So
whatever is not finite is zeroed before the first parameter sees it, and remembered; queries that
may read it come out NaN in the end, the others are untouched.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from regard.attention.axes import Faulty
from regard.attention.looking import may_look


def clean(tensor: Tensor) -> tuple[Tensor, Faulty | None]:
    """Zero each key or value that is not finite, and say which; copy only if there is one."""
    if may_look(tensor) and _finite(tensor):
        return tensor, None
    faulty = ~tensor.detach().isfinite().all(-1)
    if may_look(tensor) and not faulty.any():
        return tensor, None
    return tensor.masked_fill(faulty[..., None], 0.0), faulty[..., None, :]


def clean_queries(queries: Tensor, reads: Callable[[], Tensor]) -> Tensor:
    """Zero each query that is not finite and may read nothing; `reads` says who reads something."""
    if may_look(queries) and _finite(queries):
        return queries
    faulty = ~queries.detach().isfinite().all(-1, keepdim=True)
    return torch.where(faulty & ~reads(), 0.0, queries)


def _finite(tensor: Tensor) -> bool:
    # One pass, and no boolean of the tensor's size; a sum that overflows is looked into.
    return bool(
        tensor.detach().sum(dtype=torch.promote_types(tensor.dtype, torch.float32)).isfinite()
    )
