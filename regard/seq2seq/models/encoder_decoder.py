"""An encoder, a decoder and an output layer: p(target | source)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.core.errors import OptionError
from regard.attention.masks import Lengths
from regard.seq2seq.batch import UNK, Batch, SourceTarget, Tokens
from regard.seq2seq.decoders import Decoder, DecoderOutput, DecoderState
from regard.seq2seq.decoders.attention_maps import attention_maps
from regard.seq2seq.encoders import Encoder
from regard.seq2seq.errors import DataError
from regard.seq2seq.objectives import (
    Objective,
    Output,
    ReinforceObjective,
    draws_by_reinforce,
)
from regard.seq2seq.outputs.output_layer import CopyInputs, OutputLayer
from regard.seq2seq.protocols import DecodeStep, Loss, LossTerm, StepperState


@dataclass(slots=True)
class SearchState:
    """What the model carries: the decoder's state, and which words can be copied."""

    decoder: DecoderState
    source_lengths: Int[Tensor, " sentence"]
    """How many positions of each source are encoded."""

    copy_ids: Int[Tensor, "sentence 1 source"] | None = None
    extra_vocab: int = 0

    def reorder(self, beams: Int[Tensor, "sentence beam"]) -> "SearchState":
        """Other beams of the same sentences."""
        return replace(self, decoder=self.decoder.reorder(beams))

    def keep(self, sentences: Int[Tensor, " kept"]) -> "SearchState":
        """Some of the sentences only."""
        copy_ids = None if self.copy_ids is None else self.copy_ids[sentences]
        return SearchState(
            self.decoder.keep(sentences), self.source_lengths[sentences], copy_ids, self.extra_vocab
        )


class EncoderDecoder(nn.Module):
    """p(target | source): called with a batch it is the loss; it takes steps and has weights.

    Args:
        encoder: Sources to what attention reads.
        decoder: That and targets to features.
        output_layer: Features to log-probabilities of tokens.
        smoothing: Label smoothing in training; none otherwise, so that the loss is the logarithm
            of the perplexity.
        objectives: What it is trained for beside the cross-entropy of its tokens. A decoder that
            samples what it reads learns by `ReinforceObjective`, given or not.
    """

    def __init__(
        self,
        encoder: Encoder[Tokens],
        decoder: Decoder,
        output_layer: OutputLayer,
        *,
        smoothing: float = 0.0,
        objectives: Sequence[Objective] = (),
    ) -> None:
        super().__init__()
        self.encoder, self.decoder, self.output_layer = encoder, decoder, output_layer
        self.smoothing = smoothing
        self.objectives = _with_reinforce(objectives, decoder)
        for objective in self.objectives:
            if isinstance(objective, nn.Module):
                self.add_module(objective.name, objective)
        needs_attention = [each.name for each in self.objectives if each.needs_attention]
        if not decoder.has_attention and (output_layer.copies or needs_attention):
            raise OptionError(
                f"{type(decoder).__name__} has no attention, so nothing can be copied, covered or "
                "linked. Choose a decoder with attention, or leave these out."
            )

    def forward(self, batch: Batch) -> Loss:
        """The loss, by name: "tokens" always, then the terms of each objective."""
        assert isinstance(batch, SourceTarget)
        inputs, targets, real = self._target(batch)
        encoded = self.encoder(batch.source)
        decoded = self.decoder.forward(inputs, encoded)
        copy_inputs = self._copy_inputs(batch, decoded, real)
        if copy_inputs is None:
            targets = self._map_unknown(targets)
        smoothing = self.smoothing if self.training else 0.0
        total, log_probs = self.output_layer.loss(
            decoded.features[real], targets[real], smoothing, copy_inputs
        )
        output = Output(encoded, decoded, real, log_probs, self.training)
        terms = {"tokens": LossTerm(total, batch.counts()["tokens"])}
        for objective in self.objectives:
            terms |= objective(output, batch)
        return terms

    def start(self, batch: Batch, width: int) -> SearchState:
        """Before the first token."""
        assert isinstance(batch, SourceTarget)
        encoded = self.encoder(batch.source)
        state = SearchState(self.decoder.start(encoded, width), encoded.lengths)
        if not self.output_layer.copies:
            return state
        return replace(state, copy_ids=_copies(batch)[:, None], extra_vocab=batch.extra_vocab)

    def step(self, tokens: Int[Tensor, "sentence beam"], state: StepperState) -> DecodeStep:
        """One more token of each beam, BOS at first."""
        assert isinstance(state, SearchState)
        stepped = self.decoder.step(self._map_unknown(tokens), state.decoder)
        copy_inputs = None
        if state.copy_ids is not None and stepped.weights is not None:
            copy_inputs = CopyInputs(stepped.weights, state.copy_ids, state.extra_vocab)
        log_probs = self.output_layer.log_probs(stepped.features, copy_inputs)
        return DecodeStep(log_probs, replace(state, decoder=stepped.state), stepped.weights)

    @torch.no_grad()
    def read(self, batch: Batch) -> Mapping[str, Float[Tensor, "batch target source"]]:
        """By name: "decoder", as the steps show it, and "decoder.3/head.1" where there are heads.

        Rows of padding are 0.
        """
        assert isinstance(batch, SourceTarget)
        inputs, _, real = self._target(batch)
        whole = self.decoder.forward(inputs, self.encoder(batch.source))
        padding = ~real[..., None]
        return {name: own.masked_fill(padding, 0.0) for name, own in attention_maps(whole).items()}

    def _target(self, batch: SourceTarget) -> tuple[Tensor, Tensor, Bool[Tensor, "batch target"]]:
        """What goes in, what must come out, and where neither is padding."""
        if batch.target is None:
            raise DataError(
                "the batch has sources only. Give targets, too: SourceTarget(…, target=…)."
            )
        ids = batch.target.ids
        real = Lengths(batch.target.lengths - 1).dense(1, ids.shape[1] - 1)[:, 0]
        return self._map_unknown(ids[:, :-1]), ids[:, 1:], real

    def _map_unknown(self, ids: Int[Tensor, "*batch"]) -> Int[Tensor, "*batch"]:
        """Words past the vocabulary are unknown to the decoder."""
        return ids.masked_fill(ids >= self.output_layer.vocab_size, UNK)

    def _copy_inputs(
        self, batch: SourceTarget, whole: DecoderOutput, real: Bool[Tensor, "batch target"]
    ) -> CopyInputs | None:
        if not self.output_layer.copies:
            return None
        copies = _copies(batch)[:, None].expand(-1, real.shape[1], -1)
        return CopyInputs(_weights(whole)[real], copies[real], batch.extra_vocab)


def _with_reinforce(objectives: Sequence[Objective], decoder: Decoder) -> tuple[Objective, ...]:
    given = any(isinstance(each, ReinforceObjective) for each in objectives)
    if given or not draws_by_reinforce(decoder):
        return tuple(objectives)
    return (*objectives, ReinforceObjective(decoder.size))


def _weights(whole: DecoderOutput) -> Float[Tensor, "batch target source"]:
    weights = whole.weights()
    assert weights is not None, "a decoder that reads has weights"
    return weights


def _copies(batch: SourceTarget) -> Int[Tensor, "batch source"]:
    if batch.copy_ids is None:
        raise DataError(
            "the batch does not say what can be copied. Give each source token as an id of the "
            "target: SourceTarget(…, copy_ids=…)."
        )
    return batch.copy_ids
