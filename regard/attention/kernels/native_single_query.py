"""One query an item: step.c, forward and back."""

import ctypes

import torch
from torch import Tensor

from regard.attention.core.errors import KernelError
from regard.attention.kernels import native, signatures

StepMemory = signatures.StepArguments


def step(
    memory: StepMemory, queries: Tensor, v: Tensor | None, scale: float, weights: Tensor,
    context: Tensor, work: int,
) -> bool:  # fmt: skip
    """Fill weights and context; False if additive scores, those with v, would leave their range."""
    result = native.built().regard_step(
        ctypes.addressof(memory), queries.data_ptr(), None if v is None else v.data_ptr(), scale,
        weights.data_ptr(), context.data_ptr(),
        native.threads(work),
    )  # fmt: skip
    return _checked(memory, result)


def step_backward(
    memory: StepMemory, sent: Tensor, weights: Tensor, scale: float, to_scores: Tensor,
    to_queries: Tensor, work: int,
) -> None:  # fmt: skip
    """Fill what a context's gradient sends to the scores and to the queries of dot products."""
    _checked(
        memory,
        native.built().regard_step_back(
            ctypes.addressof(memory), sent.data_ptr(), weights.data_ptr(), scale,
            to_scores.data_ptr(), to_queries.data_ptr(), native.threads(work),
        ),
    )  # fmt: skip


def additive_step_backward(
    memory: StepMemory, asked: tuple[Tensor, Tensor], sent: Tensor, weights: Tensor, scale: float,
    to_keys: Tensor, work: int,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """What a context's gradient sends to the queries of additive scores and to each item's v.

    Args:
        memory: What was read.
        asked: Queries and v, as they were given to `step`.
        sent: The context's gradient.
        weights: What `step` has found.
        scale: As it was given to `step`.
        to_keys: `(items, count, width)`; what is sent to the keys is added to it.
        work: As above.
    """
    queries, v = asked
    to_queries, to_v = torch.empty_like(queries), queries.new_empty(memory.items, memory.width)
    _checked(
        memory,
        native.built().regard_additive_step_back(
            ctypes.addressof(memory), queries.data_ptr(), v.data_ptr(), sent.data_ptr(),
            weights.data_ptr(), scale, to_queries.data_ptr(), to_keys.data_ptr(), to_v.data_ptr(),
            native.threads(work),
        ),
    )  # fmt: skip
    return to_queries, to_v


def _checked(memory: StepMemory, result: int) -> bool:
    if result == native.NO_MEMORY:
        raise KernelError(
            f"there was no memory to read {memory.count} keys with. Free some, or read fewer."
        )
    return result == native.DONE
