"""What is computed over a vocabulary: log-softmax, cross-entropy with its gradient, argmax."""

import torch
from torch import Tensor

from regard.native import loader, parallel
from regard.native.errors import KernelError


def log_softmax(scores: Tensor, bias: Tensor | None) -> None:
    """Turn scores, `(row, token)`, contiguous, into log-probabilities, in place."""
    rows, count = scores.shape
    loader.require().regard_log_softmax(
        scores.data_ptr(), None if bias is None else bias.data_ptr(), count, rows,
        parallel.threads(scores.numel()),
    )  # fmt: skip


def cross_entropy_with_grad(
    scores: Tensor, bias: Tensor, targets: Tensor, smoothing: float, factor: float
) -> tuple[Tensor, Tensor, Tensor]:
    """The loss of each row, its target's log-probability, and the gradient of the bias.

    Scores become their gradients. Both gradients are multiplied by the factor.
    """
    rows, count = scores.shape
    _check_targets(targets, count)
    chosen, losses = scores.new_empty(rows), scores.new_empty(rows)
    targets, running = targets.contiguous(), parallel.threads(scores.numel())
    grad_bias = scores.new_zeros(running, count)
    loader.require().regard_cross_entropy(
        scores.data_ptr(), bias.data_ptr(), targets.data_ptr(), smoothing, factor,
        chosen.data_ptr(), losses.data_ptr(), grad_bias.data_ptr(), count, rows, running,
    )  # fmt: skip
    return losses, chosen, grad_bias.sum(0)


def argmax(scores: Tensor) -> Tensor:
    """The index of the maximum of each contiguous row, the first of equals."""
    *batch, count = scores.shape
    indices = torch.empty(*batch, dtype=torch.int64)
    loader.require().regard_argmax(
        scores.data_ptr(), indices.data_ptr(), count, indices.numel(),
        parallel.threads(scores.numel()),
    )  # fmt: skip
    return indices


def _check_targets(targets: Tensor, count: int) -> None:
    """C reads and writes a row at its target, wherever that is."""
    if not len(targets):
        return
    lowest, highest = (int(each) for each in targets.aminmax())
    if lowest < 0 or highest >= count:
        raise KernelError(
            f"a target is {lowest if lowest < 0 else highest} but there are {count} tokens. "
            f"Targets are from 0 to {count - 1}."
        )
