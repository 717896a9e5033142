"""Additive scores as a custom operator: one node of a compiled graph.

The backend depends on the values, on which a graph cannot branch; an operator can.
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
    queries: Tensor, keys: Tensor, v: Tensor, grad_scores: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of queries, keys and v."""
    running = backend(_inputs(queries, keys, v))
    running.accumulate_grad(slice(None), grad_scores)
    # An operator's results may not share memory with anything, padding included.
    grad_queries, grad_keys, grad_v = (each.contiguous() for each in running.gradients())
    return grad_queries, grad_keys, grad_v


@additive_scores.register_fake
def _(queries: Tensor, keys: Tensor, v: Tensor) -> Tensor:
    return queries.new_empty(queries.shape[0], queries.shape[1], keys.shape[1])


@additive_gradients.register_fake
def _(
    queries: Tensor, keys: Tensor, v: Tensor, grad_scores: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(queries), torch.empty_like(keys), torch.empty_like(v)


def _backward(ctx: Any, grad_scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    grads: tuple[Tensor, Tensor, Tensor] = additive_gradients(*ctx.saved_tensors, grad_scores)
    return grads


def _setup(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    ctx.save_for_backward(*inputs)


additive_scores.register_autograd(_backward, setup_context=_setup)


def _inputs(queries: Tensor, keys: Tensor, v: Tensor) -> AdditiveInputs:
    which = torch.arange(len(queries), device=queries.device)
    return AdditiveInputs(queries.contiguous(), keys.contiguous(), v.contiguous(), which)
