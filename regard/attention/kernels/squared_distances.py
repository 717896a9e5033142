"""‖q − k‖² of all pairs, exact where a query and a key are close."""

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.core.axes import Queries
from regard.attention.core.numerics import broadcast_batch, matmul, upcast
from regard.native import distance
from regard.native.eligibility import usable

Keys = Float[Tensor, "*#batch key query_size"]

MAX_TRANSPOSED_KEYS = 1 << 15
"""C makes a transposed copy of up to so many keys; more are upcast to float64 a part at a time."""


def squared_distances(queries: Queries, keys: Keys) -> Float[Tensor, "*#batch query key"]:
    """‖q − k‖², by subtraction in C or in torch, or by a matmul in float64."""
    if _subtracts_in_torch(queries):
        return (pairwise(queries) - upcast(keys)[..., None, :, :]).square().sum(-1)
    if _subtracts_in_c(queries, keys):
        batch = broadcast_batch(queries.shape[:-2], keys.shape[:-2])
        index = torch.arange(keys.shape[:-2].numel()).view(keys.shape[:-2]).expand(batch)
        items = queries.expand(*batch, *queries.shape[-2:]).flatten(0, -3)
        result = distance.squared_distances(
            items, keys.flatten(0, -3), index.flatten().contiguous()
        )
        return result.view(*batch, *result.shape[-2:])
    # ‖q‖² + ‖k‖² − 2 q·k cancels where they are close; in float64 enough digits are left. It costs
    # a matmul, where subtraction needs a vector for each pair.
    queries, keys = queries.double(), keys.double()
    squares = queries.square().sum(-1)[..., :, None] + keys.square().sum(-1)[..., None, :]
    return (squares - 2 * matmul(queries, keys.mT)).clamp(min=0).float()


def elements_per_pair(queries: Queries, keys: Tensor) -> int:
    """How many elements `squared_distances` allocates for a pair."""
    size = queries.shape[-1]
    if _subtracts_in_torch(queries):
        return size
    if _subtracts_in_c(queries, keys):
        return 1
    return 4 + 6 * size // max(1, queries.shape[-2])  # each key is upcast and squared


def pairwise(queries: Queries) -> Float[Tensor, "*#batch query 1 query_size"]:
    """The queries with an axis for the keys, in float32 at least."""
    return upcast(queries)[..., :, None, :]


def _subtracts_in_c(queries: Queries, keys: Tensor) -> bool:
    """Are they subtracted in C, without a vector for each pair? It has no gradient."""
    return (
        queries.ndim > 2
        and queries.numel() > 0
        and keys.shape[-2] <= MAX_TRANSPOSED_KEYS
        and not (torch.is_grad_enabled() and (queries.requires_grad or keys.requires_grad))
        and usable(queries, keys)
    )


def _subtracts_in_torch(queries: Queries) -> bool:
    """One query needs no more than its keys; float64 has no wider dtype, and is slow on GPUs."""
    return queries.shape[-2] == 1 or queries.dtype == torch.float64 or queries.device.type != "cpu"
