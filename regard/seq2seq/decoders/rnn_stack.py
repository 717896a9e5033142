"""Recurrent layers on top of each other, as decoders have them."""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.seq2seq.nn.deferred_linear import DeferredLinear
from regard.seq2seq.nn.dropout import Dropout
from regard.seq2seq.nn.module_list import TypedModuleList
from regard.seq2seq.nn.rnn import RNNLayer
from regard.seq2seq.nn.rnn_cells import CellName, State

States = list[State]
"""One state a layer, the lowest first."""


class RNNStack(nn.Module):
    """Layers, of which the lowest is given its inputs' part of the gates by the decoder.

    So a decoder can add to it what else it knows: a context, the last features.
    """

    def __init__(
        self, cell: CellName, in_size: int, size: int, layers: int, dropout: float
    ) -> None:
        super().__init__()
        sizes = [in_size] + [size] * (layers - 1)
        self.layers = TypedModuleList(RNNLayer(cell, own, size) for own in sizes)
        self.dropout = Dropout(dropout)
        self.size, self.parts = size, self.layers[0].cell.parts
        self.gates = self.layers[0].cell.gates * size

    def project(self, inputs: Float[Tensor, "*batch in"]) -> Float[Tensor, "*batch gates"]:
        """The inputs' part of the lowest layer's gates."""
        return self.layers[0].project(inputs)

    def beginning(self, source_size: int) -> "InitialState":
        """What makes the first states of a summary of the source."""
        return InitialState(source_size, self.size, len(self.layers), self.parts)

    def forward_sequence(
        self, parts: Float[Tensor, "step batch gates"], states: States
    ) -> Float[Tensor, "step batch size"]:
        """All steps; what is seen of the highest layer."""
        seen = parts
        for number, (layer, state) in enumerate(zip(self.layers, states, strict=True)):
            own = layer.project(self.dropout(seen)) if number else parts
            steps, batch, _ = own.shape
            outputs, _ = layer.forward_sequence(own.flatten(0, 1), [batch] * steps, state)
            seen = outputs.unflatten(0, (steps, batch))
        return seen

    def steps(self) -> "RNNStackSteps":
        """The layers as one loop uses them."""
        return RNNStackSteps(self)

    def flatten(self, states: States) -> dict[str, Tensor]:
        """The states as tensors by name."""
        return {
            f"{layer}.{part}": tensor
            for layer, state in enumerate(states)
            for part, tensor in enumerate(state)
        }

    def unflatten(self, tensors: Mapping[str, Tensor]) -> States:
        """The states again."""
        return [
            tuple(tensors[f"{layer}.{part}"] for part in range(self.parts))
            for layer in range(len(self.layers))
        ]


class RNNStackSteps:
    """The layers step by step, for one loop."""

    def __init__(self, stack: RNNStack) -> None:
        self.layers = [layer.steps() for layer in stack.layers]
        self.above = [DeferredLinear(layer.input[0]) for layer in stack.layers][1:]
        self.dropout = stack.dropout

    def __call__(self, parts: Float[Tensor, "*batch gates"], states: States) -> States:
        """The next states."""
        after = [self.layers[0](parts, states[0])]
        for layer, project, state in zip(self.layers[1:], self.above, states[1:], strict=True):
            after.append(layer(project(self.dropout(after[-1][0])), state))
        return after


class InitialState(nn.Module):
    """The first state of each layer, s₀ = tanh(W · summary) (Bahdanau 2015, appendix A.2.2)."""

    def __init__(self, source_size: int, size: int, layers: int, parts: int) -> None:
        super().__init__()
        self.size, self.layers, self.parts = size, layers, parts
        self.linear = nn.Linear(source_size, layers * parts * size)

    def forward(self, summary: Float[Tensor, "*batch source_size"]) -> States:
        """For each layer, as many tensors as its state has."""
        tensors = torch.tanh(self.linear(summary)).split(self.size, -1)
        return [
            tuple(tensors[layer * self.parts : (layer + 1) * self.parts])
            for layer in range(self.layers)
        ]
