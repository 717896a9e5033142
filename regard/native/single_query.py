"""Softmax reads of one query an item, by dot products or additive scores, and their backward."""

import ctypes

import torch
from torch import Tensor

from regard.native import loader, parallel
from regard.native.errors import KernelError
from regard.native.signatures import DONE, NO_MEMORY, StepMemory


def step(
    memory: StepMemory, queries: Tensor, v: Tensor | None, scale: float, weights: Tensor,
    context: Tensor, work: int,
) -> bool:  # fmt: skip
    """Fill weights and context; False if additive scores, those with v, are out of range."""
    status = loader.require().regard_single_query(
        ctypes.addressof(memory), queries.data_ptr(), None if v is None else v.data_ptr(), scale,
        weights.data_ptr(), context.data_ptr(), parallel.threads(work),
    )  # fmt: skip
    return _in_range(memory, status)


def step_backward(
    memory: StepMemory, grad_context: Tensor, weights: Tensor, scale: float, grad_scores: Tensor,
    grad_queries: Tensor, work: int,
) -> None:  # fmt: skip
    """Fill the gradients of the scores and of the queries of dot products."""
    status = loader.require().regard_single_query_backward(
        ctypes.addressof(memory), grad_context.data_ptr(), weights.data_ptr(), scale,
        grad_scores.data_ptr(), grad_queries.data_ptr(), parallel.threads(work),
    )  # fmt: skip
    _in_range(memory, status)


def additive_step_backward(
    memory: StepMemory, queries_and_v: tuple[Tensor, Tensor], grad_context: Tensor,
    weights: Tensor, scale: float, grad_keys: Tensor, work: int,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """The gradients of the queries of additive scores and of each item's v.

    Args:
        memory: What was read.
        queries_and_v: As they were given to `step`.
        grad_context: The context's gradient.
        weights: As `step` has filled them.
        scale: As it was given to `step`.
        grad_keys: `(items, count, width)`; the gradient of the keys is added to it.
        work: As above.
    """
    queries, v = queries_and_v
    grad_queries, grad_v = torch.empty_like(queries), queries.new_empty(memory.items, memory.width)
    status = loader.require().regard_additive_single_query_backward(
        ctypes.addressof(memory), queries.data_ptr(), v.data_ptr(), grad_context.data_ptr(),
        weights.data_ptr(), scale, grad_queries.data_ptr(), grad_keys.data_ptr(),
        grad_v.data_ptr(), parallel.threads(work),
    )  # fmt: skip
    _in_range(memory, status)
    return grad_queries, grad_v


def _in_range(memory: StepMemory, status: int) -> bool:
    if status == NO_MEMORY:
        raise KernelError(
            f"out of memory while reading {memory.count} keys. Free some, or read fewer."
        )
    return status == DONE
