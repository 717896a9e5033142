"""A recurrent layer: all steps at once, or one by one.

The products with the inputs are taken for all steps together, before the loop. So are, after the
way back, the gradients of the weights: see `hoisted` for a loop that others run.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from regard.attention.kernels.autocast import off
from regard.attention.kernels.turning import turned
from regard.seq2seq.cells import Cell, CellName, State, cell_named, one_step
from regard.seq2seq.hoisted import Hoisted
from regard.seq2seq.layers import Layers
from regard.seq2seq.turned import product


class Recurrence(nn.Module):
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
        self.input = Layers(nn.Linear(in_size, wide) for _ in range(directions))
        self.state = Layers(nn.Linear(size, wide, bias=False) for _ in range(directions))
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
        return product(inputs, self.input[0])

    def whole(
        self, parts: Float[Tensor, "step direction batch gates"], state: State
    ) -> tuple[Float[Tensor, "step direction batch size"], State]:
        """All steps: what is seen of each state, and the last one."""
        weights = [linear.weight for linear in self.state]
        weight = weights[0][None] if self.directions == 1 else torch.stack(weights)
        parts, state = parts.to(weight.dtype), tuple(part.to(weight.dtype) for part in state)
        outputs, *last = _Whole.apply(self.cell, parts, weight, *state)  # type: ignore[no-untyped-call]
        return outputs, tuple(last)

    def both(
        self, inputs: list[Float[Tensor, "step batch in"]]
    ) -> Float[Tensor, "step direction batch size"]:
        """All steps of each direction, over its own inputs, from a state of zeros."""
        parts = [own(seen) for own, seen in zip(self.input, inputs, strict=True)]
        batch = inputs[0].shape[1]
        zeros = parts[0].new_zeros(self.directions, batch, self.size)
        return self.whole(torch.stack(parts, 1), (zeros,) * self.cell.parts)[0]

    def steps(self) -> "Steps":
        """The layer as one loop uses it."""
        return Steps(self)


class Steps:
    """A layer of one direction, step by step: for one loop, at the end of which it learns."""

    def __init__(self, layer: Recurrence) -> None:
        self.cell, self.gates = layer.cell, Hoisted(layer.state[0])

    def __call__(self, parts: Float[Tensor, "*batch gates"], state: State) -> State:
        """The next state."""
        gates = self.gates(state[0])
        state = tuple(part.to(gates.dtype) for part in state)
        return one_step(self.cell, parts.to(gates.dtype), gates, state)


class _Whole(torch.autograd.Function):
    """What is seen of the states lies in one tensor, and so do gradients: no step's is copied."""

    @staticmethod
    def forward(
        ctx: Any, cell: Cell, parts: Tensor, weight: Tensor, *state: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.cell, ctx.states, ctx.saved = cell, [state], []
        ctx.set_materialize_grads(False)
        learns, by_columns = any(ctx.needs_input_grad), torch.stack([*map(turned, weight)])
        seen = parts.new_empty(len(parts) + 1, *state[0].shape)
        seen[0] = state[0]
        for inputs, after in zip(parts.unbind(0), seen[1:].unbind(0), strict=True):
            with off(parts.device.type):
                gates = torch.bmm(state[0], by_columns)
            state, saved = cell.forward(inputs, gates, state, after)
            if learns:
                ctx.states.append(state)
                ctx.saved.append(saved)
        ctx.save_for_backward(weight)
        ctx.seen = seen
        return seen[1:], *(part.clone() for part in state)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradient: Tensor | None) -> tuple[Tensor | None, ...]:
        cell, states, steps = ctx.cell, ctx.states, len(ctx.saved)
        (weight,) = ctx.saved_tensors
        to_each = [None] * steps if gradient[0] is None else gradient[0].unbind(0)
        back = [
            torch.zeros_like(part) if given is None else given
            for part, given in zip(states[0], gradient[1:], strict=True)
        ]
        directions, batch, size = states[0][0].shape
        room = weight.new_empty(2, steps, directions, batch, cell.gates * size)
        for step in reversed(range(steps)):
            outer, to = to_each[step], (room[0, step], room[1, step])
            back[0] = back[0] if outer is None else back[0] + outer
            back = cell.backward(back, ctx.saved[step], states[step], to)
            back[0] = torch.baddbmm(back[0], to[1], weight)
        to_inputs, to_gates = room
        to_weight = torch.bmm(_by_direction(to_gates).mT, _by_direction(ctx.seen[:-1]))
        return None, to_inputs, to_weight, *back


def _by_direction(tensor: Float[Tensor, "step direction batch size"]) -> Tensor:
    """`(direction, step · batch, size)`: the steps of one direction are there already."""
    return tensor.transpose(0, 1).flatten(1, 2)
