"""A recurrent layer: over a whole sequence at once, or step by step.

The products with the inputs are taken for all steps together, before the loop; the gradients of the
weights after it. `deferred_linear` does the latter for a loop that a decoder runs.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from regard.attention.core.autocast import autocast_disabled
from regard.native.transpose import transposed
from regard.seq2seq.nn.deferred_linear import DeferredLinear
from regard.seq2seq.nn.module_list import TypedModuleList
from regard.seq2seq.nn.rnn_cells import CellName, CellState, RNNCell, build_cell, cell_step
from regard.seq2seq.nn.transposed_linear import apply_linear


class RNNLayer(nn.Module):
    """One layer, with one or more independent directions.

    Args:
        cell: "gru" or "lstm".
        in_size: Size of an input.
        size: Size of the hidden state, in each direction.
        directions: How many; each has its own inputs, in the order in which it reads them.
    """

    def __init__(self, cell: CellName, in_size: int, size: int, directions: int = 1) -> None:
        super().__init__()
        self.cell, self.size, self.directions = build_cell(cell), size, directions
        gates = self.cell.gates * size
        self.input = TypedModuleList(nn.Linear(in_size, gates) for _ in range(directions))
        self.hidden = TypedModuleList(nn.Linear(size, gates, bias=False) for _ in range(directions))
        for from_input, from_hidden in zip(self.input, self.hidden, strict=True):
            nn.init.zeros_(from_input.bias)
            if cell == "lstm":
                nn.init.ones_(from_input.bias[size : 2 * size])  # forget nothing at first
            for gate in range(self.cell.gates):
                rows = slice(gate * size, (gate + 1) * size)
                nn.init.xavier_uniform_(from_input.weight[rows])
                nn.init.orthogonal_(from_hidden.weight[rows])

    def project(self, inputs: Float[Tensor, "*batch in"]) -> Float[Tensor, "*batch gates"]:
        """The input gates, for a layer of one direction."""
        return apply_linear(inputs, self.input[0])

    def forward_sequence(
        self,
        input_gates: Float[Tensor, "row gates"],
        batch_sizes: Sequence[int],
        state: CellState,
        direction: int = 0,
    ) -> tuple[Float[Tensor, "row size"], CellState]:
        """All steps of one direction: the outputs, and the last state of each sequence.

        Args:
            input_gates: Packed: the rows of the first step, of the second, …
            batch_sizes: How many sequences have each step; sequences are sorted by length.
            state: Of every sequence, before the first step.
            direction: Which one.
        """
        weight = self.hidden[direction].weight
        input_gates = input_gates.to(weight.dtype)
        state = tuple(tensor.to(weight.dtype) for tensor in state)
        outputs, *last = _Sequence.apply(self.cell, input_gates, list(batch_sizes), weight, *state)  # type: ignore[no-untyped-call]
        return outputs, tuple(last)

    def run_direction(
        self,
        inputs: Float[Tensor, "row in"],
        batch_sizes: Sequence[int],
        batch: int,
        direction: int,
    ) -> tuple[Float[Tensor, "row size"], Float[Tensor, "batch size"]]:
        """`forward_sequence` over inputs, from states of zeros; of the last state the output."""
        input_gates = self.input[direction](inputs)
        zeros = input_gates.new_zeros(batch, self.size)
        state = (zeros,) * self.cell.state_tensors
        outputs, last = self.forward_sequence(input_gates, batch_sizes, state, direction)
        return outputs, last[0]

    def steps(self) -> "RNNSteps":
        """The layer for one loop over steps."""
        return RNNSteps(self)


class RNNSteps:
    """A layer of one direction, step by step; made anew for each loop."""

    def __init__(self, layer: RNNLayer) -> None:
        self.cell, self.hidden = layer.cell, DeferredLinear(layer.hidden[0])

    def __call__(self, input_gates: Float[Tensor, "*batch gates"], state: CellState) -> CellState:
        """The next state."""
        hidden_gates = self.hidden(state[0])
        state = tuple(tensor.to(hidden_gates.dtype) for tensor in state)
        return cell_step(self.cell, input_gates.to(hidden_gates.dtype), hidden_gates, state)


class _Sequence(torch.autograd.Function):
    """All outputs are one tensor, and so are the gradients of all gates: no step's is copied."""

    @staticmethod
    def forward(
        ctx: Any,
        cell: RNNCell,
        input_gates: Tensor,
        batch_sizes: list[int],
        weight: Tensor,
        *state: Tensor,
    ) -> tuple[Tensor, ...]:
        ctx.cell, ctx.batch_sizes, ctx.states, ctx.saved = cell, batch_sizes, [], []
        ctx.set_materialize_grads(False)
        needs_grad, weight_t = any(ctx.needs_input_grad), transposed(weight)
        batch, size = state[0].shape
        hidden = torch.cat([state[0], state[0].new_empty(len(input_gates), size)])
        first, *outputs = hidden.split([batch, *batch_sizes])
        state, ended = (first, *state[1:]), []
        for gates, out in zip(input_gates.split(batch_sizes), outputs, strict=True):
            ended.append([tensor[len(gates) :] for tensor in state])
            before = tuple(tensor[: len(gates)] for tensor in state)
            with autocast_disabled(input_gates.device.type):
                hidden_gates = before[0] @ weight_t
            state, saved = cell.forward(gates, hidden_gates, before, out)
            if needs_grad:
                ctx.states.append(before)
                ctx.saved.append(saved)
        ended.append(list(state))
        ctx.save_for_backward(weight)
        ctx.hidden = hidden
        last = (torch.cat(tensors) for tensors in zip(*reversed(ended), strict=True))
        return hidden[batch:], *last

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, grad_outputs: Tensor | None, *grad_final: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        cell, batch_sizes, (weight,) = ctx.cell, ctx.batch_sizes, ctx.saved_tensors
        rows, size = sum(batch_sizes), weight.shape[1]
        batch = len(ctx.hidden) - rows
        grad_last = [weight.new_zeros(batch, size) if grad is None else grad for grad in grad_final]
        grad_each = None if grad_outputs is None else grad_outputs.split(batch_sizes)
        grad_input, grad_hidden = weight.new_empty(2, rows, cell.gates * size).unbind(0)
        grad_gates = list(
            zip(grad_input.split(batch_sizes), grad_hidden.split(batch_sizes), strict=True)
        )
        grad_state = [tensor[:0] for tensor in grad_last]
        for step in reversed(range(len(batch_sizes))):
            grad_state = _extend(grad_state, grad_last, batch_sizes[step])
            if grad_each is not None:
                grad_state[0] = grad_state[0] + grad_each[step]
            grad_state = cell.backward(
                grad_state, ctx.saved[step], ctx.states[step], grad_gates[step]
            )
            grad_state[0] = torch.addmm(grad_state[0], grad_gates[step][1], weight)
        grad_weight = grad_hidden.mT @ _states_before(ctx.hidden, batch, batch_sizes)
        return None, grad_input, None, grad_weight, *_extend(grad_state, grad_last, batch)


def _extend(grad_state: list[Tensor], grad_last: list[Tensor], count: int) -> list[Tensor]:
    """With the gradients of the sequences, up to `count`, that end at this step."""
    if len(grad_state[0]) == count:
        return grad_state
    pairs = zip(grad_state, grad_last, strict=True)
    return [torch.cat([grad, last[len(grad) : count]]) for grad, last in pairs]


def _states_before(
    hidden: Float[Tensor, "all size"], batch: int, batch_sizes: list[int]
) -> Float[Tensor, "row size"]:
    """The state before each row: `hidden` itself, one step behind, if no sequence ended early."""
    if not batch_sizes or batch_sizes[-1] == batch:
        return hidden[: sum(batch_sizes)]
    steps = hidden.split([batch, *batch_sizes])
    return torch.cat([step[:count] for step, count in zip(steps, batch_sizes, strict=False)])
