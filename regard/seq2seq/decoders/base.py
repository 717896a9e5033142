"""What a decoder is: targets to features, all at once for training, one by one for a search."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from regard.attention.attend import Attention
from regard.attention.core.records import tree_map
from regard.attention.masks import Lengths
from regard.attention.memory import Memory
from regard.attention.multihead import MultiHead
from regard.attention.reading import Reading
from regard.attention.state import State
from regard.seq2seq.protocols import Encoded


@dataclass(slots=True)
class AttentionRecords:
    """What one attention read for a target: at once, or one reading a token."""

    parts: list[Reading]

    @property
    def weights(self) -> Float[Tensor, "batch *heads target source"]:
        """Found when they are asked for."""
        return torch.cat([part.weights for part in self.parts], -2)

    @property
    def log_probs(self) -> Float[Tensor, "batch *heads target"]:
        """Of what was drawn; 0 where nothing was."""
        return torch.cat([part.log_probs for part in self.parts], -1)


@dataclass(slots=True)
class DecoderOutput:
    """What a decoder makes of a target. Row t is what the token after the t-th comes from."""

    features: Float[Tensor, "batch target size"]
    readings: Mapping[str, AttentionRecords] = field(default_factory=dict)
    """By name, "decoder" or "decoder.3", the last one last; empty if the source is not read."""

    def weights(self) -> Float[Tensor, "batch target source"] | None:
        """What the model as a whole shows: the last reading, the mean of its heads."""
        if not self.readings:
            return None
        return shown(list(self.readings.values())[-1].weights, self.features.ndim)


@dataclass(slots=True)
class DecoderState:
    """What a decoder carries from token to token, for `(sentence, beam)`."""

    per_beam: dict[str, Tensor] = field(default_factory=dict)
    """`(sentence, beam, …)`: each beam has its own."""

    per_sentence: dict[str, Tensor] = field(default_factory=dict)
    """`(sentence, 1, …)`: all beams of a sentence share it."""

    source: list[Memory] = field(default_factory=list)
    """What is read: one memory for each attention to the source, shared by the beams."""

    self_memories: list[Memory] = field(default_factory=list)
    """What was written: one memory for each attention of the target to itself."""

    attention_states: dict[str, State] = field(default_factory=dict)
    """What attentions remember of the last step."""

    weights_cache: Any = None
    """What all sentences have in common: packed weights, say."""

    def reorder(self, beams: Int[Tensor, "sentence beam"]) -> "DecoderState":
        """Other beams of the same sentences. The source stays the very same."""

        def chosen(tensor: Tensor) -> Tensor:
            return _beams(tensor, beams)

        return DecoderState(
            {name: chosen(tensor) for name, tensor in self.per_beam.items()},
            self.per_sentence,
            self.source,
            [tree_map(memory, chosen) for memory in self.self_memories],
            {name: trace.reorder(beams) for name, trace in self.attention_states.items()},
            self.weights_cache,
        )

    def keep(self, sentences: Int[Tensor, " kept"]) -> "DecoderState":
        """Some of the sentences only."""
        return DecoderState(
            {name: tensor[sentences] for name, tensor in self.per_beam.items()},
            {name: tensor[sentences] for name, tensor in self.per_sentence.items()},
            [memory.reorder(sentences) for memory in self.source],
            [memory.reorder(sentences) for memory in self.self_memories],
            {name: trace.reorder(sentences) for name, trace in self.attention_states.items()},
            self.weights_cache,
        )


@dataclass(slots=True)
class DecoderStep:
    """What one token led to."""

    features: Float[Tensor, "sentence beam size"]
    state: DecoderState
    weights: Float[Tensor, "sentence beam source"] | None = None
    """What was read for the token that comes next."""


@runtime_checkable
class Decoder(Protocol):
    """Whatever turns a target into features, from which each next token is told."""

    size: int
    """Of the features."""

    has_attention: bool
    """Does it read the source, so that there are weights?"""

    embedding: nn.Embedding

    def forward(self, inputs: Int[Tensor, "batch target"], encoded: Encoded) -> DecoderOutput:
        """All tokens of known targets."""

    def start(self, encoded: Encoded, width: int) -> DecoderState:
        """Before the first token, for so many beams of each sentence."""

    def step(self, tokens: Int[Tensor, "sentence beam"], state: DecoderState) -> DecoderStep:
        """One more token of each beam."""


@runtime_checkable
class HasAttention(Protocol):
    """A decoder with one attention to the source, which may draw."""

    attention: Attention


def source_memory(reader: Attention | MultiHead, encoded: Encoded) -> Memory:
    """The source for beams: held once a sentence, with an axis of one for all of them."""
    values = encoded.values[:, None]
    return reader.prepare(values, values, Lengths(encoded.lengths[:, None]))


def _beams(tensor: Tensor, beams: Int[Tensor, "sentence beam"]) -> Tensor:
    """Other beams, by rows one after another: quicker than to index two axes."""
    starts = torch.arange(len(beams), device=beams.device)[:, None] * tensor.shape[1]
    rows = tensor.flatten(0, 1).index_select(0, (starts + beams).flatten())
    return rows.unflatten(0, tuple(beams.shape))


def shown(weights: Float[Tensor, "..."], rank: int) -> Tensor:
    """The weights without an axis of heads, if there is one."""
    return weights.mean(-3) if weights.ndim > rank else weights
