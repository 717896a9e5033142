"""One step of a GRU or an LSTM, forward and backward, written by hand.

A step gets the pre-activations of its gates in two parts, W x + b (`input_gates`, computed for all
steps at once) and U h (`hidden_gates`). A state is a tuple of tensors, of which the first is the
output.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.attention.core.errors import OptionError
from regard.native.eligibility import usable
from regard.native.gru import gru, gru_backward

CellName = Literal["gru", "lstm"]
CellState = tuple[Tensor, ...]


class RNNCell(ABC):
    """One step as plain arithmetic: autograd sees none of it."""

    gates: int
    """How many gates: their size is a multiple of the state's."""

    state_tensors: int
    """How many tensors a state has."""

    @abstractmethod
    def forward(
        self, input_gates: Tensor, hidden_gates: Tensor, state: CellState, out: Tensor
    ) -> tuple[CellState, CellState]:
        """The next state, and what backward needs; the output is written to `out`."""

    @abstractmethod
    def backward(
        self,
        grad_state: Sequence[Tensor],
        saved: CellState,
        state: CellState,
        grad_gates: tuple[Tensor, Tensor],
    ) -> list[Tensor]:
        """The gradient of the state, without its share by way of the gates.

        The gradients of the input gates and of the hidden gates are written to `grad_gates`.
        """


class GRUCell(RNNCell):
    """h' = (1 − z) n + z h, n = tanh(x + r U h) (Cho 2014, with the reset after the product)."""

    gates, state_tensors = 3, 1

    def forward(
        self, input_gates: Tensor, hidden_gates: Tensor, state: CellState, out: Tensor
    ) -> tuple[CellState, CellState]:
        (hidden,) = state
        if usable(input_gates, hidden_gates, hidden, out, contiguous=True):
            out, sigmoids, new = gru(input_gates, hidden_gates, hidden, out)
            return (out,), (sigmoids, new, hidden_gates)
        two = 2 * hidden.shape[-1]
        sigmoids = (input_gates[..., :two] + hidden_gates[..., :two]).sigmoid_()
        reset, update = sigmoids.chunk(2, -1)
        new = torch.addcmul(input_gates[..., two:], reset, hidden_gates[..., two:]).tanh_()
        return (torch.lerp(new, hidden, update, out=out),), (sigmoids, new, hidden_gates)

    def backward(
        self,
        grad_state: Sequence[Tensor],
        saved: CellState,
        state: CellState,
        grad_gates: tuple[Tensor, Tensor],
    ) -> list[Tensor]:
        (grad,), (sigmoids, new, hidden_gates), (hidden,) = grad_state, saved, state
        if usable(hidden_gates, hidden, *grad_gates, contiguous=True):
            return [gru_backward(grad, hidden_gates, hidden, sigmoids, new, grad_gates)]
        grad_input, grad_hidden = grad_gates
        size = hidden.shape[-1]
        reset, update = sigmoids.chunk(2, -1)
        grad_before = grad * update
        grad_new = torch.mul(grad - grad_before, 1 - new * new, out=grad_input[..., 2 * size :])
        torch.mul(grad_new, hidden_gates[..., 2 * size :], out=grad_input[..., :size])
        torch.mul(grad, hidden - new, out=grad_input[..., size : 2 * size])
        grad_input[..., : 2 * size] *= sigmoids - sigmoids * sigmoids
        grad_hidden.copy_(grad_input)
        grad_hidden[..., 2 * size :] *= reset
        return [grad_before]


class LSTMCell(RNNCell):
    """c' = f c + i g, h' = o tanh(c') (Hochreiter 1997, Gers 2000)."""

    gates, state_tensors = 4, 2

    def forward(
        self, input_gates: Tensor, hidden_gates: Tensor, state: CellState, out: Tensor
    ) -> tuple[CellState, CellState]:
        size = state[1].shape[-1]
        gates = input_gates + hidden_gates
        gates[..., : 2 * size].sigmoid_()
        gates[..., 2 * size : 3 * size].tanh_()
        gates[..., 3 * size :].sigmoid_()
        input_gate, forget_gate, new, output_gate = gates.chunk(4, -1)
        cell = torch.addcmul(forget_gate * state[1], input_gate, new)
        cell_tanh = cell.tanh()
        return (torch.mul(output_gate, cell_tanh, out=out), cell), (gates, cell_tanh)

    def backward(
        self,
        grad_state: Sequence[Tensor],
        saved: CellState,
        state: CellState,
        grad_gates: tuple[Tensor, Tensor],
    ) -> list[Tensor]:
        (grad_hidden, grad_cell), (gates, cell_tanh) = grad_state, saved
        size = cell_tanh.shape[-1]
        input_gate, forget_gate, new, output_gate = gates.chunk(4, -1)
        grad_cell = torch.addcmul(grad_cell, grad_hidden * output_gate, 1 - cell_tanh * cell_tanh)
        # First the derivatives of the four activations, then each times its gate's gradient.
        grads = torch.sub(gates, gates * gates, out=grad_gates[0])
        torch.mul(new, -new, out=grads[..., 2 * size : 3 * size]).add_(1)
        for gate, factor in enumerate((new, state[1], input_gate)):
            grads[..., gate * size : (gate + 1) * size] *= grad_cell * factor
        grads[..., 3 * size :] *= grad_hidden * cell_tanh
        grad_gates[1].copy_(grads)
        return [torch.zeros_like(grad_hidden), grad_cell * forget_gate]


def build_cell(name: CellName) -> RNNCell:
    """The cell of that name."""
    if name == "gru":
        return GRUCell()
    if name == "lstm":
        return LSTMCell()
    raise OptionError(f'the cell is {name!r}. Choose "gru" or "lstm".')


def cell_step(
    cell: RNNCell, input_gates: Tensor, hidden_gates: Tensor, state: CellState
) -> CellState:
    """The next state, differentiable where gradients are enabled."""
    if not torch.is_grad_enabled():
        return cell.forward(input_gates, hidden_gates, state, torch.empty_like(state[0]))[0]
    after: CellState = _CellStep.apply(cell, input_gates, hidden_gates, *state)  # type: ignore[no-untyped-call]
    return after


class _CellStep(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, cell: RNNCell, input_gates: Tensor, hidden_gates: Tensor, *state: Tensor
    ) -> CellState:
        after, saved = cell.forward(input_gates, hidden_gates, state, torch.empty_like(state[0]))
        ctx.cell, ctx.saved_count = cell, len(saved)
        ctx.save_for_backward(*saved, *state)
        return after

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grad_state: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors[: ctx.saved_count]
        state = ctx.saved_tensors[ctx.saved_count :]
        shape = *state[0].shape[:-1], ctx.cell.gates * state[0].shape[-1]
        grad_gates = state[0].new_empty(shape), state[0].new_empty(shape)
        grad_before = ctx.cell.backward(grad_state, saved, state, grad_gates)
        return None, *grad_gates, *grad_before
