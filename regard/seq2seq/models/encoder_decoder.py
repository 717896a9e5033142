"""An encoder, a decoder and a readout: p(target | source)."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from regard.attention.core.errors import OptionError
from regard.attention.masks import Lengths
from regard.attention.selection import Hard
from regard.seq2seq.batch import UNK, Batch, SourceTarget
from regard.seq2seq.decoders import Decoder, DecoderOutput, DecoderState, HasAttention
from regard.seq2seq.decoders.attention_maps import attention_maps, choose_map
from regard.seq2seq.encoders import Encoder
from regard.seq2seq.errors import DataError
from regard.seq2seq.nn.linear_cross_entropy import coverage_loss
from regard.seq2seq.objectives.guided_alignment import guided_alignment_loss
from regard.seq2seq.outputs.output_layer import CopyInputs, OutputLayer
from regard.seq2seq.protocols import DecodeStep, Loss, LossTerm, StepperState


@dataclass(slots=True)
class SearchState:
    """What the model carries: the decoder's state, and which words can be copied."""

    decoder: DecoderState
    copy_ids: Int[Tensor, "sentence 1 source"] | None = None
    extra_vocab: int = 0

    def reorder(self, beams: Int[Tensor, "sentence beam"]) -> "SearchState":
        """Other beams of the same sentences."""
        return SearchState(self.decoder.reorder(beams), self.copy_ids, self.extra_vocab)

    def keep(self, sentences: Int[Tensor, " kept"]) -> "SearchState":
        """Some of the sentences only."""
        copies = None if self.copy_ids is None else self.copy_ids[sentences]
        return SearchState(self.decoder.keep(sentences), copies, self.extra_vocab)


class EncoderDecoder(nn.Module):
    """p(target | source): it has a loss, takes steps and tells its weights.

    Args:
        encoder: Sources to what is known of them.
        decoder: That and targets to features.
        readout: Features to tokens.
        smoothing: What share of a target goes to all tokens alike in training; otherwise none
            does, so that the loss is the logarithm of the perplexity.
        coverage: How much it counts to read something twice (See 2017).
        links: How much given alignments count (Garg 2019).
        links_layer: Which reading they are held to, as `readings.chosen` has it.
        reinforce: How much the draws of `selection.Hard` learn from what came of them.
        baseline: How much the head learns that foretells what comes of them.
    """

    def __init__(
        self,
        encoder: Encoder,
        decoder: Decoder,
        readout: OutputLayer,
        *,
        smoothing: float = 0.0,
        coverage: float = 0.0,
        links: float = 0.0,
        links_layer: str = "",
        reinforce: float = 1.0,
        baseline: float = 1.0,
    ) -> None:
        super().__init__()
        self.encoder, self.decoder, self.readout = encoder, decoder, readout
        self.smoothing, self.coverage = smoothing, coverage
        self.links, self.links_layer = links, links_layer
        self.reinforce, self.baseline_weight = reinforce, baseline
        self.baseline = nn.Linear(decoder.size, 1) if _needs_reinforce(decoder) else None
        if not decoder.has_attention and (readout.copies or coverage or links):
            raise OptionError(
                f"{type(decoder).__name__} reads nothing of the source, so that nothing can be "
                "copied, covered or linked. Choose a decoder with attention, or leave these out."
            )

    def loss(self, batch: Batch) -> Loss:
        """By name: "tokens" always; the others where there is something to them."""
        assert isinstance(batch, SourceTarget)
        inputs, targets, real = self._target(batch)
        whole = self.decoder.forward(inputs, self.encoder(batch.source))
        aside = self._copy_inputs(batch, whole, real)
        if aside is None:
            targets = self._map_unknown(targets)
        features, count = whole.features[real], batch.counts()["tokens"]
        smoothing = self.smoothing if self.training else 0.0
        total, log_probs = self.readout.loss(features, targets[real], smoothing, aside)
        terms = {"tokens": LossTerm(total, count)}
        if self.coverage:
            terms["coverage"] = LossTerm(coverage_loss(_weights(whole), real), count, self.coverage)
        if self.links and batch.links is not None:
            held = choose_map(attention_maps(whole), self.links_layer)
            total = guided_alignment_loss(held, batch.links)
            terms["links"] = LossTerm(total, batch.counts()["links"], self.links)
        if self.baseline is not None and self.training:
            terms |= self._reinforce_terms(self.baseline, whole, real, log_probs)
        return terms

    def start(self, batch: Batch, width: int) -> SearchState:
        """Before the first token."""
        assert isinstance(batch, SourceTarget)
        state = self.decoder.start(self.encoder(batch.source), width)
        if not self.readout.copies:
            return SearchState(state)
        return SearchState(state, _copies(batch)[:, None], batch.extra_vocab)

    def step(self, tokens: Int[Tensor, "sentence beam"], state: StepperState) -> DecodeStep:
        """One more token of each beam, `BEGIN` at first."""
        assert isinstance(state, SearchState)
        stepped = self.decoder.step(self._map_unknown(tokens), state.decoder)
        aside = None
        if state.copy_ids is not None and stepped.weights is not None:
            aside = CopyInputs(stepped.weights, state.copy_ids, state.extra_vocab)
        log_probs = self.readout.log_probs(stepped.features, aside)
        return DecodeStep(
            log_probs,
            SearchState(stepped.state, state.copy_ids, state.extra_vocab),
            stepped.weights,
        )

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
            raise DataError("the batch has sources only. Give targets, too: Pairs(…, target=…).")
        ids = batch.target.ids
        real = Lengths(batch.target.lengths - 1).dense(1, ids.shape[1] - 1)[:, 0]
        return self._map_unknown(ids[:, :-1]), ids[:, 1:], real

    def _map_unknown(self, ids: Int[Tensor, "*batch"]) -> Int[Tensor, "*batch"]:
        """Words past the vocabulary are unknown to the decoder."""
        return ids.masked_fill(ids >= self.readout.vocabulary, UNK)

    def _copy_inputs(
        self, batch: SourceTarget, whole: DecoderOutput, real: Bool[Tensor, "batch target"]
    ) -> CopyInputs | None:
        if not self.readout.copies:
            return None
        copies = _copies(batch)[:, None].expand(-1, real.shape[1], -1)
        return CopyInputs(_weights(whole)[real], copies[real], batch.extra_vocab)

    def _reinforce_terms(
        self,
        baseline: nn.Linear,
        whole: DecoderOutput,
        real: Bool[Tensor, "batch target"],
        log_probs: Float[Tensor, " row"],
    ) -> dict[str, LossTerm]:
        """Draws are rewarded by how likely they made their token and all later ones.

        So their gradient is that of the expected log-probability (Xu 2015, eq. 12). What a head
        foretells of the reward is taken off: it lowers the variance and leaves the expectation, for
        it sees the features before the draw and not those that came of it.
        """
        each = log_probs.new_zeros(real.shape).masked_scatter(real, log_probs)
        reward = each.flip(1).cumsum(1).flip(1)[real]
        before = functional.pad(whole.features.detach()[:, :-1], (0, 0, 1, 0))
        foretold = baseline(before[real])[:, 0]
        drawn = whole.readings["decoder"].log_probs[real]
        gain = ((reward - foretold).detach() * drawn).sum()
        return {
            "reinforce": LossTerm(-gain, len(reward), self.reinforce),
            "baseline": LossTerm(
                (foretold - reward).square().sum(), len(reward), self.baseline_weight
            ),
        }


def _needs_reinforce(decoder: Decoder) -> bool:
    """Must its attention be told what came of its draws?"""
    if not isinstance(decoder, HasAttention):
        return False
    select = decoder.attention.select
    return isinstance(select, Hard) and select.gradient == "reinforce"


def _weights(whole: DecoderOutput) -> Float[Tensor, "batch target source"]:
    weights = whole.weights()
    assert weights is not None, "a decoder that reads has weights"
    return weights


def _copies(batch: SourceTarget) -> Int[Tensor, "batch source"]:
    if batch.copy_ids is None:
        raise DataError(
            "the batch does not say what can be copied. Give each source token as an id of the "
            "target: Pairs(…, copies=…)."
        )
    return batch.copy_ids
