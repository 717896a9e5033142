"""Stacked recurrent layers, as decoders have them."""

from collections.abc import Mapping

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.seq2seq.nn.deferred_linear import DeferredLinear
from regard.seq2seq.nn.dropout import Dropout
from regard.seq2seq.nn.module_list import TypedModuleList
from regard.seq2seq.nn.rnn import RNNLayer
from regard.seq2seq.nn.rnn_cells import CellName, CellState

States = list[CellState]
"""One state a layer, the bottom one first."""


class RNNStack(nn.Module):
    """Layers, of which the bottom one is given its input gates by the decoder.

    So a decoder can add to them: from a context, or from the last features.

    Args:
        cell: "gru" or "lstm".
        in_size: Size of an input.
        size: Size of the hidden state of each layer.
        source_size: Size of the source's summary, from which the first states are computed.
        layers: How many layers.
        dropout: Dropout rate between layers.
    """

    def __init__(
        self,
        cell: CellName,
        in_size: int,
        size: int,
        source_size: int,
        *,
        layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        sizes = [in_size] + [size] * (layers - 1)
        self.layers = TypedModuleList(RNNLayer(cell, layer_in, size) for layer_in in sizes)
        self.dropout = Dropout(dropout)
        self.state_tensors = self.layers[0].cell.state_tensors
        self.gates = self.layers[0].cell.gates * size
        self.initial = InitialState(source_size, size, layers, self.state_tensors)

    def project(self, inputs: Float[Tensor, "*batch in"]) -> Float[Tensor, "*batch gates"]:
        """The bottom layer's input gates."""
        return self.layers[0].project(inputs)

    def forward_sequence(
        self, input_gates: Float[Tensor, "step batch gates"], states: States
    ) -> Float[Tensor, "step batch size"]:
        """All steps; the outputs of the top layer."""
        hidden = input_gates
        for number, (layer, state) in enumerate(zip(self.layers, states, strict=True)):
            gates = layer.project(self.dropout(hidden)) if number else input_gates
            steps, batch, _ = gates.shape
            outputs, _ = layer.forward_sequence(gates.flatten(0, 1), [batch] * steps, state)
            hidden = outputs.unflatten(0, (steps, batch))
        return hidden

    def steps(self) -> "RNNStackSteps":
        """The layers for one loop over steps."""
        return RNNStackSteps(self)

    def start(
        self, summary: Float[Tensor, "sentence source_size"], width: int
    ) -> dict[str, Tensor]:
        """The first states for so many beams, as `flatten` gives them."""
        return self.flatten(self.initial(summary[:, None].expand(-1, width, -1)))

    def flatten(self, states: States) -> dict[str, Tensor]:
        """The states as tensors by name."""
        return {
            f"{layer}.{number}": tensor
            for layer, state in enumerate(states)
            for number, tensor in enumerate(state)
        }

    def unflatten(self, tensors: Mapping[str, Tensor]) -> States:
        """The inverse of `flatten`."""
        return [
            tuple(tensors[f"{layer}.{number}"] for number in range(self.state_tensors))
            for layer in range(len(self.layers))
        ]


class RNNStackSteps:
    """The layers step by step; made anew for each loop."""

    def __init__(self, stack: RNNStack) -> None:
        self.layers = [layer.steps() for layer in stack.layers]
        self.projections = [DeferredLinear(layer.input[0]) for layer in stack.layers][1:]
        self.dropout = stack.dropout

    def __call__(self, input_gates: Float[Tensor, "*batch gates"], states: States) -> States:
        """The next states."""
        after = [self.layers[0](input_gates, states[0])]
        for layer, project, state in zip(
            self.layers[1:], self.projections, states[1:], strict=True
        ):
            after.append(layer(project(self.dropout(after[-1][0])), state))
        return after


class InitialState(nn.Module):
    """The first state of each layer, s₀ = tanh(W · summary) (Bahdanau 2015, appendix A.2.2)."""

    def __init__(self, source_size: int, size: int, layers: int, state_tensors: int) -> None:
        super().__init__()
        self.size, self.layers, self.state_tensors = size, layers, state_tensors
        self.linear = nn.Linear(source_size, layers * state_tensors * size)

    def forward(self, summary: Float[Tensor, "*batch source_size"]) -> States:
        tensors = torch.tanh(self.linear(summary)).split(self.size, -1)
        return [
            tuple(tensors[layer * self.state_tensors : (layer + 1) * self.state_tensors])
            for layer in range(self.layers)
        ]
