"""What a recurrent network does at one step, and the way back through it, written by hand.

A step gets the input's part of its gates, `inputs`, computed for all steps at once, and the
state's part, `gates`. A state is a tuple of tensors, the first of which is what others see.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.attention.core.errors import OptionError
from regard.attention.kernels import native

CellName = Literal["gru", "lstm"]
State = tuple[Tensor, ...]


class Cell(ABC):
    """One step, as plain arithmetic: torch's gradient knows nothing of it."""

    gates: int
    """How many times the state's size the gates have."""

    parts: int
    """How many tensors a state has."""

    @abstractmethod
    def forward(
        self, inputs: Tensor, gates: Tensor, state: State, after: Tensor
    ) -> tuple[State, State]:
        """The next state, and what the way back needs; what others see is written to `after`."""

    @abstractmethod
    def backward(
        self, gradient: Sequence[Tensor], saved: State, state: State, to: tuple[Tensor, Tensor]
    ) -> list[Tensor]:
        """The gradient of the state; those of the inputs' part and of the state's are written."""


class Gru(Cell):
    """h' = (1 − z) n + z h, n = tanh(x + r W h) (Cho 2014, with the reset after the product)."""

    gates, parts = 3, 1

    def forward(
        self, inputs: Tensor, gates: Tensor, state: State, after: Tensor
    ) -> tuple[State, State]:
        (hidden,) = state
        if _use_native(inputs, gates, hidden, after):
            after, both, new = native.gru(inputs, gates, hidden, after)
            return (after,), (both, new, gates)
        two = 2 * hidden.shape[-1]
        both = (inputs[..., :two] + gates[..., :two]).sigmoid_()
        reset, stay = both.chunk(2, -1)
        new = torch.addcmul(inputs[..., two:], reset, gates[..., two:]).tanh_()
        return (torch.lerp(new, hidden, stay, out=after),), (both, new, gates)

    def backward(
        self, gradient: Sequence[Tensor], saved: State, state: State, to: tuple[Tensor, Tensor]
    ) -> list[Tensor]:
        (outer,), (both, new, gates), (hidden,), (to_inputs, to_gates) = gradient, saved, state, to
        if _use_native(gates, hidden, *to):
            return [native.gru_backward(outer, gates, hidden, both, new, to)]
        size = hidden.shape[-1]
        reset, stay = both.chunk(2, -1)
        kept = outer * stay
        to_new = torch.mul(outer - kept, 1 - new * new, out=to_inputs[..., 2 * size :])
        torch.mul(to_new, gates[..., 2 * size :], out=to_inputs[..., :size])
        torch.mul(outer, hidden - new, out=to_inputs[..., size : 2 * size])
        to_inputs[..., : 2 * size] *= both - both * both
        to_gates.copy_(to_inputs)
        to_gates[..., 2 * size :] *= reset
        return [kept]


class Lstm(Cell):
    """c' = f c + i g, h' = o tanh(c') (Hochreiter 1997, Gers 2000)."""

    gates, parts = 4, 2

    def forward(
        self, inputs: Tensor, gates: Tensor, state: State, after: Tensor
    ) -> tuple[State, State]:
        size = state[1].shape[-1]
        every = inputs + gates
        every[..., : 2 * size].sigmoid_()
        every[..., 2 * size : 3 * size].tanh_()
        every[..., 3 * size :].sigmoid_()
        write, keep, new, show = every.chunk(4, -1)
        inner = torch.addcmul(keep * state[1], write, new)
        outer = inner.tanh()
        return (torch.mul(show, outer, out=after), inner), (every, outer)

    def backward(
        self, gradient: Sequence[Tensor], saved: State, state: State, to: tuple[Tensor, Tensor]
    ) -> list[Tensor]:
        (to_hidden, to_inner), (every, outer) = gradient, saved
        size = outer.shape[-1]
        write, keep, new, show = every.chunk(4, -1)
        to_inner = torch.addcmul(to_inner, to_hidden * show, 1 - outer * outer)
        slopes = torch.sub(every, every * every, out=to[0])
        torch.mul(new, -new, out=slopes[..., 2 * size : 3 * size]).add_(1)
        factors = (new, state[1], write)
        for place, factor in enumerate(factors):
            slopes[..., place * size : (place + 1) * size] *= to_inner * factor
        slopes[..., 3 * size :] *= to_hidden * outer
        to[1].copy_(slopes)
        return [torch.zeros_like(to_hidden), to_inner * keep]


def _use_native(*tensors: Tensor) -> bool:
    """Can the C kernels go over these?"""
    return native.library() is not None and all(
        tensor.is_cpu and tensor.dtype == torch.float32 and tensor.is_contiguous()
        for tensor in tensors
    )


def cell_named(name: CellName) -> Cell:
    """The cell of that name."""
    if name == "gru":
        return Gru()
    if name == "lstm":
        return Lstm()
    raise OptionError(f'the cell is {name!r}. Choose "gru" or "lstm".')


def cell_step(cell: Cell, inputs: Tensor, gates: Tensor, state: State) -> State:
    """The next state, with its gradient if someone may ask for it."""
    if not torch.is_grad_enabled():
        return cell.forward(inputs, gates, state, torch.empty_like(state[0]))[0]
    after: State = _CellStep.apply(cell, inputs, gates, *state)  # type: ignore[no-untyped-call]
    return after


class _CellStep(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, cell: Cell, inputs: Tensor, gates: Tensor, *state: Tensor) -> State:
        after, saved = cell.forward(inputs, gates, state, torch.empty_like(state[0]))
        ctx.cell, ctx.held = cell, len(saved)
        ctx.save_for_backward(*saved, *state)
        return after

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradient: Tensor) -> tuple[Tensor | None, ...]:
        saved, state = ctx.saved_tensors[: ctx.held], ctx.saved_tensors[ctx.held :]
        shape = *state[0].shape[:-1], ctx.cell.gates * state[0].shape[-1]
        to_inputs, to_gates = state[0].new_empty(shape), state[0].new_empty(shape)
        to_state = ctx.cell.backward(gradient, saved, state, (to_inputs, to_gates))
        return None, to_inputs, to_gates, *to_state
