"""What a decoder is: targets to features, in parallel for training, step by step for a search."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

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
from regard.seq2seq.decoders.fused_cache import FusedDecoderCache
from regard.seq2seq.protocols import Encoded


@dataclass(slots=True)
class AttentionRecords:
    """What one attention read for a target: in parallel, or one reading a token."""

    readings: list[Reading]

    @property
    def weights(self) -> Float[Tensor, "batch *heads target source"]:
        """Computed when they are asked for."""
        return torch.cat([reading.weights for reading in self.readings], -2)

    @property
    def log_probs(self) -> Float[Tensor, "batch *heads target"]:
        """Of what was sampled; 0 where nothing was."""
        return torch.cat([reading.log_probs for reading in self.readings], -1)


@dataclass(slots=True)
class DecoderOutput:
    """A decoder's output for a target. Row t predicts the token after the t-th."""

    features: Float[Tensor, "batch target size"]
    readings: Mapping[str, AttentionRecords] = field(default_factory=dict)
    """By layer, "decoder" or "decoder.3", the last one last; empty without attention."""

    def weights(self) -> Float[Tensor, "batch target source"] | None:
        """The model's attention map: the last layer's, the mean of its heads."""
        if not self.readings:
            return None
        return mean_over_heads(list(self.readings.values())[-1].weights, self.features.ndim)


@dataclass(slots=True)
class DecoderState:
    """What a decoder carries from token to token, for `(sentence, beam)`.

    Fields are named by who owns them: what beams own is reordered with them, what a sentence owns
    is only dropped with it.
    """

    per_beam: dict[str, Tensor] = field(default_factory=dict)
    """`(sentence, beam, …)`: each beam has its own."""

    per_sentence: dict[str, Tensor] = field(default_factory=dict)
    """`(sentence, 1, …)`: all beams of a sentence share it."""

    source: list[Memory] = field(default_factory=list)
    """One memory for each cross-attention, shared by the beams."""

    self_memories: list[Memory] = field(default_factory=list)
    """The key–value cache: one memory for each self-attention."""

    attention_states: dict[str, State] = field(default_factory=dict)
    """What attentions carry from the last step, by layer."""

    fused: FusedDecoderCache | None = None
    """What all sentences share in a fused decoder; None in any other."""

    def reorder(self, beams: Int[Tensor, "sentence beam"]) -> "DecoderState":
        """Other beams of the same sentences. The source is never copied."""

        def select(tensor: Tensor) -> Tensor:
            return _select_beams(tensor, beams)

        return DecoderState(
            {name: select(tensor) for name, tensor in self.per_beam.items()},
            self.per_sentence,
            self.source,
            [tree_map(memory, select) for memory in self.self_memories],
            {name: state.reorder(beams) for name, state in self.attention_states.items()},
            self.fused,
        )

    def keep(self, sentences: Int[Tensor, " kept"]) -> "DecoderState":
        """Some of the sentences only."""
        return DecoderState(
            {name: tensor[sentences] for name, tensor in self.per_beam.items()},
            {name: tensor[sentences] for name, tensor in self.per_sentence.items()},
            [memory.reorder(sentences) for memory in self.source],
            [memory.reorder(sentences) for memory in self.self_memories],
            {name: state.reorder(sentences) for name, state in self.attention_states.items()},
            self.fused,
        )


@dataclass(slots=True)
class DecoderStep:
    """A decoder's output for one token of each beam."""

    features: Float[Tensor, "sentence beam size"]
    state: DecoderState
    weights: Float[Tensor, "sentence beam source"] | None = None
    """Attention weights for the token that comes next."""


@runtime_checkable
class Decoder(Protocol):
    """Targets to features, from which an output layer predicts each next token."""

    size: int
    """Of the features."""

    has_attention: bool
    """Does it attend to the source, so that there are weights?"""

    embedding: nn.Embedding

    def forward(self, inputs: Int[Tensor, "batch target"], encoded: Encoded) -> DecoderOutput:
        """All tokens of given targets (teacher forcing)."""

    def start(self, encoded: Encoded, width: int) -> DecoderState:
        """Before the first token, for so many beams of each sentence."""

    def step(self, tokens: Int[Tensor, "sentence beam"], state: DecoderState) -> DecoderStep:
        """One more token of each beam."""


@runtime_checkable
class HasAttention(Protocol):
    """A decoder with one attention to the source, which may sample."""

    attention: Attention


def source_memory(attention: Attention | MultiHead, encoded: Encoded) -> Memory:
    """The source for beams: once a sentence, with an axis of 1 for all of them."""
    values = encoded.values[:, None]
    return attention.prepare(values, values, Lengths(encoded.lengths[:, None]))


def mean_over_heads(weights: Float[Tensor, "..."], rank: int) -> Tensor:
    """The weights without an axis of heads, if they have more axes than `rank`."""
    return weights.mean(-3) if weights.ndim > rank else weights


def _select_beams(tensor: Tensor, beams: Int[Tensor, "sentence beam"]) -> Tensor:
    """Other beams, by rows of one axis: faster than indexing two."""
    starts = torch.arange(len(beams), device=beams.device)[:, None] * tensor.shape[1]
    rows = tensor.flatten(0, 1).index_select(0, (starts + beams).flatten())
    return rows.unflatten(0, tuple(beams.shape))
