"""A recurrent encoder, in one direction or in both."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.options import whole
from regard.seq2seq.cells import CellName
from regard.seq2seq.dropout import Dropout
from regard.seq2seq.embeddings import embedding as table
from regard.seq2seq.encoders.base import without_padding
from regard.seq2seq.examples import Tokens
from regard.seq2seq.layers import Layers
from regard.seq2seq.recurrence import Recurrence
from regard.seq2seq.seams import Encoded


class Recurrent(nn.Module):
    """What came before each token and, both ways, what comes after (Bahdanau 2015, section 3.2).

    The summary is the last state of each direction.

    Args:
        vocabulary: How many tokens there are.
        embedding: Size of a token's vector.
        size: Size of the state in each direction.
        cell: "gru" or "lstm".
        layers: How many layers; each sees both directions of the one below.
        both_ways: Read from the end, too?
        dropout: What share of the vectors' and of the layers' numbers goes missing in training.
        reverse: Read from the end first (Sutskever 2014, section 3.3); places stay as they are.
    """

    def __init__(
        self,
        vocabulary: int,
        embedding: int,
        size: int,
        *,
        cell: CellName = "gru",
        layers: int = 1,
        both_ways: bool = True,
        dropout: float = 0.0,
        reverse: bool = False,
    ) -> None:
        super().__init__()
        self.backwards = (reverse, not reverse) if both_ways else (reverse,)
        self.out_size = size * len(self.backwards)
        self.embedding = table(vocabulary, embedding)
        self.dropout = Dropout(dropout)
        sizes = [embedding] + [self.out_size] * (whole("layers", layers, 1) - 1)
        self.layers = Layers(
            Recurrence(cell, in_size, size, len(self.backwards)) for in_size in sizes
        )

    def forward(self, tokens: Tokens) -> Encoded:
        turned = _turned(tokens.lengths, tokens.ids.shape[1])
        # Both directions run from their first token on, so that padding comes last in each and
        # nothing real has seen it. Time is the first axis.
        seen = self.embedding(tokens.ids.mT)
        outputs = seen
        for layer in self.layers:
            seen = self.dropout(seen)
            own = [_at(seen, turned) if back else seen for back in self.backwards]
            outputs = layer.both(own)  # (step, direction, batch, size)
            each = [
                _at(found, turned) if back else found
                for found, back in zip(outputs.unbind(1), self.backwards, strict=True)
            ]
            seen = torch.cat(each, -1) if len(each) > 1 else each[0]
        values = without_padding(seen.transpose(0, 1), tokens.lengths)
        return Encoded(values, tokens.lengths, _last(outputs, tokens.lengths), tokens.spans)


def _turned(lengths: Int[Tensor, " batch"], length: int) -> Int[Tensor, "length batch"]:
    """Where each place lies when a sentence is read from its end; padding stays where it is."""
    places = torch.arange(length, device=lengths.device)[:, None]
    other = lengths - 1 - places
    return torch.where(other < 0, places, other)


def _at(
    steps: Float[Tensor, "length batch size"], places: Int[Tensor, "length batch"]
) -> Float[Tensor, "length batch size"]:
    return steps[places, torch.arange(steps.shape[1], device=steps.device)]


def _last(
    outputs: Float[Tensor, "length direction batch size"], lengths: Int[Tensor, " batch"]
) -> Float[Tensor, "batch all"]:
    """The last state of each direction, side by side; zeros where there is nothing to read."""
    if not outputs.shape[0]:
        return outputs.new_zeros(outputs.shape[2], outputs.shape[1] * outputs.shape[3])
    sentences = torch.arange(len(lengths), device=lengths.device)
    found = outputs[(lengths - 1).clamp(min=0), :, sentences]
    return found.masked_fill((lengths == 0)[:, None, None], 0.0).flatten(1)
