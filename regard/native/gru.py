"""A step of a GRU, and its backward."""

import ctypes
import math

import torch
from torch import Tensor

from regard.native import loader, parallel
from regard.native.signatures import GruArguments


def gru(
    inputs: Tensor, gates: Tensor, hidden: Tensor, next_hidden: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The next state; reset and update gates side by side; and the candidate state.

    All are contiguous: inputs and gates `(*batch, 3 · size)`, hidden and next_hidden, which is
    filled, `(*batch, size)`.
    """
    *batch, size = hidden.shape
    reset_update = hidden.new_empty(*batch, 2 * size)
    candidate = torch.empty_like(hidden)
    tensors = (inputs, gates, hidden, reset_update, candidate, next_hidden)
    args = GruArguments(*(each.data_ptr() for each in tensors), rows=math.prod(batch), size=size)
    loader.require().regard_gru(ctypes.addressof(args), parallel.threads(inputs.numel()))
    return next_hidden, reset_update, candidate


def gru_backward(
    grad_next: Tensor, gates: Tensor, hidden: Tensor, reset_update: Tensor, candidate: Tensor,
    grads: tuple[Tensor, Tensor],
) -> Tensor:  # fmt: skip
    """The gradient of the state, from that of the next state.

    Those of inputs and gates are written to two contiguous tensors of their shapes, `grads`.
    """
    size, grad_next, (grad_inputs, grad_gates) = hidden.shape[-1], grad_next.contiguous(), grads
    grad_hidden = torch.empty_like(hidden)
    args = GruArguments(
        None, gates.data_ptr(), hidden.data_ptr(), reset_update.data_ptr(), candidate.data_ptr(),
        None, grad_next.data_ptr(), grad_inputs.data_ptr(), grad_gates.data_ptr(),
        grad_hidden.data_ptr(), hidden.shape[:-1].numel(), size,
    )  # fmt: skip
    loader.require().regard_gru(ctypes.addressof(args), parallel.threads(gates.numel()))
    return grad_hidden
