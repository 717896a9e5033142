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
    @staticmethod
    def forward(
        ctx: Any, cell: Cell, parts: Tensor, weight: Tensor, *state: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.cell, ctx.states, ctx.saved = cell, [state], []
        ctx.set_materialize_grads(False)
        learns, outputs = any(ctx.needs_input_grad), []
        # Torch turns one matrix in blocks, and an axis of them number by number.
        alone = len(weight) == 1
        turned = weight[0].mT.contiguous()[None] if alone else weight.mT.contiguous()
        for inputs in parts.unbind(0):
            with off(parts.device.type):
                gates = torch.bmm(state[0], turned)
            state, saved = cell.forward(inputs, gates, state)
            outputs.append(state[0])
            if learns:
                ctx.states.append(state)
                ctx.saved.append(saved)
        ctx.save_for_backward(weight)
        seen = torch.stack(outputs) if outputs else parts.new_zeros(0, *state[0].shape)
        return seen, *(part.clone() for part in state)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradient: Tensor | None) -> tuple[Tensor | None, ...]:
        cell, states = ctx.cell, ctx.states
        (weight,) = ctx.saved_tensors
        to_each = [None] * len(ctx.saved) if gradient[0] is None else gradient[0].unbind(0)
        back = [
            torch.zeros_like(part) if given is None else given
            for part, given in zip(states[0], gradient[1:], strict=True)
        ]
        to_inputs, to_gates = [], []
        for outer, saved, state in zip(
            reversed(to_each), reversed(ctx.saved), reversed(states[:-1]), strict=True
        ):
            back[0] = back[0] if outer is None else back[0] + outer
            inputs, gates, back = cell.backward(back, saved, state)
            back[0] = torch.baddbmm(back[0], gates, weight)
            to_inputs.append(inputs)
            to_gates.append(gates)
        gates = torch.cat(to_gates[::-1], 1)  # (direction, step × batch, gates)
        seen = torch.cat([state[0] for state in states[:-1]], 1)
        return None, torch.stack(to_inputs[::-1]), torch.bmm(gates.mT, seen), *back
