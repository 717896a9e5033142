"""A recurrent layer: all steps at once, or one by one.

The products with the inputs are taken for all steps together, before the loop. So are, after the
way back, the gradients of the weights: see `hoisted` for a loop that others run.
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from regard.attention.kernels.autocast import autocast_disabled
from regard.attention.kernels.transpose import transposed
from regard.seq2seq.nn.deferred_linear import DeferredLinear
from regard.seq2seq.nn.module_list import TypedModuleList
from regard.seq2seq.nn.rnn_cells import Cell, CellName, State, cell_named, cell_step
from regard.seq2seq.nn.transposed_linear import apply_linear


class RNNLayer(nn.Module):
    """One layer, in one direction or in several that know nothing of each other.

    Args:
        cell: "gru" or "lstm".
        in_size: Size of an input.
        size: Size of the state, of each direction.
        directions: How many of them; each sees its own inputs, in the order in which they come.
    """

    def __init__(self, cell: CellName, in_size: int, size: int, directions: int = 1) -> None:
        super().__init__()
        self.cell, self.size, self.directions = cell_named(cell), size, directions
        wide = self.cell.gates * size
        self.input = TypedModuleList(nn.Linear(in_size, wide) for _ in range(directions))
        self.state = TypedModuleList(nn.Linear(size, wide, bias=False) for _ in range(directions))
        for inputs, state in zip(self.input, self.state, strict=True):
            nn.init.zeros_(inputs.bias)
            if cell == "lstm":
                nn.init.ones_(inputs.bias[size : 2 * size])  # forget nothing at first
            for gate in range(self.cell.gates):
                rows = slice(gate * size, (gate + 1) * size)
                nn.init.xavier_uniform_(inputs.weight[rows])
                nn.init.orthogonal_(state.weight[rows])

    def project(self, inputs: Float[Tensor, "*batch in"]) -> Float[Tensor, "*batch gates"]:
        """The inputs' part of the gates, for a layer of one direction."""
        return apply_linear(inputs, self.input[0])

    def forward_sequence(
        self,
        parts: Float[Tensor, "row gates"],
        counts: Sequence[int],
        state: State,
        direction: int = 0,
    ) -> tuple[Float[Tensor, "row size"], State]:
        """All steps of one direction: what is seen of each state, and each sequence's last one.

        Args:
            parts: The inputs' part of the gates: the rows of the first step, of the second, ...
            counts: How many sequences have each step. The first ones go on, the others have ended.
            state: That of every sequence before the first step.
            direction: Which of them.
        """
        weight = self.state[direction].weight
        parts, state = parts.to(weight.dtype), tuple(part.to(weight.dtype) for part in state)
        outputs, *last = _SequenceFunction.apply(self.cell, parts, list(counts), weight, *state)  # type: ignore[no-untyped-call]
        return outputs, tuple(last)

    def run_direction(
        self, inputs: Float[Tensor, "row in"], counts: Sequence[int], batch: int, direction: int
    ) -> tuple[Float[Tensor, "row size"], Float[Tensor, "batch size"]]:
        """All steps of one direction over its own inputs, from states of zeros: see `whole`."""
        parts = self.input[direction](inputs)
        zeros = parts.new_zeros(batch, self.size)
        outputs, last = self.forward_sequence(parts, counts, (zeros,) * self.cell.parts, direction)
        return outputs, last[0]

    def steps(self) -> "RNNSteps":
        """The layer as one loop uses it."""
        return RNNSteps(self)


class RNNSteps:
    """A layer of one direction, step by step: for one loop, at the end of which it learns."""

    def __init__(self, layer: RNNLayer) -> None:
        self.cell, self.gates = layer.cell, DeferredLinear(layer.state[0])

    def __call__(self, parts: Float[Tensor, "*batch gates"], state: State) -> State:
        """The next state."""
        gates = self.gates(state[0])
        state = tuple(part.to(gates.dtype) for part in state)
        return cell_step(self.cell, parts.to(gates.dtype), gates, state)


class _SequenceFunction(torch.autograd.Function):
    """What is seen of the states lies in one tensor, and so do gradients: no step's is copied."""

    @staticmethod
    def forward(
        ctx: Any, cell: Cell, parts: Tensor, counts: list[int], weight: Tensor, *state: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.cell, ctx.counts, ctx.states, ctx.saved = cell, counts, [], []
        ctx.set_materialize_grads(False)
        learns, by_columns = any(ctx.needs_input_grad), transposed(weight)
        seen = torch.cat([state[0], state[0].new_empty(len(parts), state[0].shape[1])])
        first, *afters = seen.split([len(state[0]), *counts])
        state, ended = (first, *state[1:]), []
        for inputs, after in zip(parts.split(counts), afters, strict=True):
            goes_on = len(inputs)
            ended.append([part[goes_on:] for part in state])
            before = tuple(part[:goes_on] for part in state)
            with autocast_disabled(parts.device.type):
                gates = before[0] @ by_columns
            state, saved = cell.forward(inputs, gates, before, after)
            if learns:
                ctx.states.append(before)
                ctx.saved.append(saved)
        ended.append(list(state))
        ctx.save_for_backward(weight)
        ctx.seen = seen
        last = (torch.cat(part) for part in zip(*reversed(ended), strict=True))
        return seen[len(first) :], *last

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradient: Tensor | None) -> tuple[Tensor | None, ...]:
        cell, counts, (weight,) = ctx.cell, ctx.counts, ctx.saved_tensors
        batch, size = len(ctx.seen) - sum(counts), weight.shape[1]
        to_last = [
            weight.new_zeros(batch, size) if given is None else given for given in gradient[1:]
        ]
        to_each = None if gradient[0] is None else gradient[0].split(counts)
        room = weight.new_empty(2, sum(counts), cell.gates * size)
        to_inputs, to_gates = room.unbind(0)
        to = list(zip(to_inputs.split(counts), to_gates.split(counts), strict=True))
        back = [part[:0] for part in to_last]
        for step in reversed(range(len(counts))):
            back = _joined(back, to_last, counts[step])
            if to_each is not None:
                back[0] = back[0] + to_each[step]
            back = cell.backward(back, ctx.saved[step], ctx.states[step], to[step])
            back[0] = torch.addmm(back[0], to[step][1], weight)
        to_weight = to_gates.mT @ _before(ctx.seen, batch, counts)
        return None, to_inputs, None, to_weight, *_joined(back, to_last, batch)


def _joined(some: list[Tensor], everyone: list[Tensor], count: int) -> list[Tensor]:
    """Of so many sequences: some of them, and the next ones, which had ended before."""
    if len(some[0]) == count:
        return some
    pairs = zip(some, everyone, strict=True)
    return [torch.cat([own, others[len(own) : count]]) for own, others in pairs]


def _before(
    seen: Float[Tensor, "all size"], batch: int, counts: list[int]
) -> Float[Tensor, "row size"]:
    """What was seen a step before each row: what is seen lies one step behind if none has ended."""
    if not counts or counts[-1] == batch:
        return seen[: sum(counts)]
    steps = seen.split([batch, *counts])
    return torch.cat([step[:count] for step, count in zip(steps, counts, strict=False)])
