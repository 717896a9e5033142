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
    """The state of a search: the decoder's, and which source tokens can be copied."""

    decoder: DecoderState
    source_lengths: Int[Tensor, " sentence"]
    """Number of encoded positions of each source."""

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
    """p(target | source): a loss, a `Stepper` and `HasWeights`.

    Args:
        encoder: Sources to the memory of the attention.
        decoder: That memory and targets to features.
        output_layer: Features to log-probabilities of tokens.
        smoothing: Label smoothing in training; none otherwise, so that the loss is the log of the
            perplexity.
        objectives: Auxiliary losses. A decoder that samples its attention is trained by
            `ReinforceObjective`, given or not.
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
        """The state before the first token."""
        assert isinstance(batch, SourceTarget)
        encoded = self.encoder(batch.source)
        state = SearchState(self.decoder.start(encoded, width), encoded.lengths)
        if not self.output_layer.copies:
            return state
        return replace(state, copy_ids=_copy_ids(batch)[:, None], extra_vocab=batch.extra_vocab)

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
        """By name: "decoder", as `step` returns it, and "decoder.3/head.1" for each head.

        Rows of padding are 0.
        """
        assert isinstance(batch, SourceTarget)
        inputs, _, real = self._target(batch)
        maps = attention_maps(self.decoder.forward(inputs, self.encoder(batch.source)))
        padding = ~real[..., None]
        return {name: weights.masked_fill(padding, 0.0) for name, weights in maps.items()}

    def _target(self, batch: SourceTarget) -> tuple[Tensor, Tensor, Bool[Tensor, "batch target"]]:
        """Decoder inputs, their labels (shifted by one), and the mask of positions not padding."""
        if batch.target is None:
            raise DataError(
                "the batch has sources only. Give targets, too: SourceTarget(…, target=…)."
            )
        ids = batch.target.ids
        real = Lengths(batch.target.lengths - 1).dense(1, ids.shape[1] - 1)[:, 0]
        return self._map_unknown(ids[:, :-1]), ids[:, 1:], real

    def _map_unknown(self, ids: Int[Tensor, "*batch"]) -> Int[Tensor, "*batch"]:
        """Copied words past the vocabulary are UNK to the decoder."""
        return ids.masked_fill(ids >= self.output_layer.vocab_size, UNK)

    def _copy_inputs(
        self, batch: SourceTarget, decoded: DecoderOutput, real: Bool[Tensor, "batch target"]
    ) -> CopyInputs | None:
        if not self.output_layer.copies:
            return None
        copy_ids = _copy_ids(batch)[:, None].expand(-1, real.shape[1], -1)
        return CopyInputs(_weights(decoded)[real], copy_ids[real], batch.extra_vocab)


def _with_reinforce(objectives: Sequence[Objective], decoder: Decoder) -> tuple[Objective, ...]:
    given = any(isinstance(each, ReinforceObjective) for each in objectives)
    if given or not draws_by_reinforce(decoder):
        return tuple(objectives)
    return (*objectives, ReinforceObjective(decoder.size))


def _weights(decoded: DecoderOutput) -> Float[Tensor, "batch target source"]:
    weights = decoded.weights()
    assert weights is not None, "a decoder with attention has weights"
    return weights


def _copy_ids(batch: SourceTarget) -> Int[Tensor, "batch source"]:
    if batch.copy_ids is None:
        raise DataError(
            "the batch has no copy_ids. Give each source token as an id of the target: "
            "SourceTarget(…, copy_ids=…)."
        )
    return batch.copy_ids
