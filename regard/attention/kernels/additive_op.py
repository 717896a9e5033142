"""Additive scores as an operator of torch's own: one node of a compiled graph.

Which engine serves depends on the numbers, which a graph cannot branch on; an operator can.
"""

from typing import Any

import torch
from torch import Tensor

from regard.attention.kernels.additive_backends import AdditiveInputs, backend


@torch.library.custom_op("regard::additive_scores", mutates_args=())
def additive_scores(queries: Tensor, keys: Tensor, v: Tensor) -> Tensor:
    """Scores `(item, query, key)` of queries and keys, each item with its own keys and v."""
    return backend(_inputs(queries, keys, v)).scores(slice(None))


@torch.library.custom_op("regard::additive_gradients", mutates_args=())
def additive_gradients(
    queries: Tensor, keys: Tensor, v: Tensor, sent: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """What a gradient of the scores sends to queries, keys and v."""
    running = backend(_inputs(queries, keys, v))
    running.accumulate_grad(slice(None), sent)
    # An operator's results may not share memory with anything, padding included.
    to_queries, to_keys, to_v = (each.contiguous() for each in running.gradients())
    return to_queries, to_keys, to_v


@additive_scores.register_fake
def _(queries: Tensor, keys: Tensor, v: Tensor) -> Tensor:
    return queries.new_empty(queries.shape[0], queries.shape[1], keys.shape[1])


@additive_gradients.register_fake
def _(queries: Tensor, keys: Tensor, v: Tensor, sent: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(queries), torch.empty_like(keys), torch.empty_like(v)


def _backward(ctx: Any, sent: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    found: tuple[Tensor, Tensor, Tensor] = additive_gradients(*ctx.saved_tensors, sent)
    return found


def _setup(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


additive_scores.register_autograd(_backward, setup_context=_setup)


def _inputs(queries: Tensor, keys: Tensor, v: Tensor) -> AdditiveInputs:
    which = torch.arange(len(queries), device=queries.device)
    return AdditiveInputs(queries.contiguous(), keys.contiguous(), v.contiguous(), which)
