"""An encoder, a decoder and a readout: p(target | source)."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from regard.attention.errors import OptionError
from regard.attention.masks import Lengths
from regard.attention.selection import Hard
from regard.seq2seq.decoders import Attentive, Carried, Decoder, Whole
from regard.seq2seq.encoders import Encoder
from regard.seq2seq.errors import DataError
from regard.seq2seq.examples import UNKNOWN, Batch, Pairs
from regard.seq2seq.guiding import links_loss
from regard.seq2seq.losses import repeated
from regard.seq2seq.readings import by_name, chosen
from regard.seq2seq.readout import Aside, Reader
from regard.seq2seq.seams import Loss, State, Step, Term


@dataclass(slots=True)
class Progress:
    """What the model carries: the decoder's state, and which words can be copied."""

    decoder: Carried
    copies: Int[Tensor, "sentence 1 source"] | None = None
    extra: int = 0

    def reorder(self, beams: Int[Tensor, "sentence beam"]) -> "Progress":
        """Other beams of the same sentences."""
        return Progress(self.decoder.reorder(beams), self.copies, self.extra)

    def keep(self, sentences: Int[Tensor, " kept"]) -> "Progress":
        """Some of the sentences only."""
        copies = None if self.copies is None else self.copies[sentences]
        return Progress(self.decoder.keep(sentences), copies, self.extra)


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
        readout: Reader,
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
        self.baseline = nn.Linear(decoder.size, 1) if _draws(decoder) else None
        if not decoder.reads and (readout.copies or coverage or links):
            raise OptionError(
                f"{type(decoder).__name__} reads nothing of the source, so that nothing can be "
                "copied, covered or linked. Choose a decoder with attention, or leave these out."
            )

    def loss(self, batch: Batch) -> Loss:
        """By name: "tokens" always; the others where there is something to them."""
        assert isinstance(batch, Pairs)
        inputs, targets, real = self._target(batch)
        whole = self.decoder.whole(inputs, self.encoder(batch.source))
        aside = self._aside(batch, whole, real)
        if aside is None:
            targets = self._known(targets)
        features, count = whole.features[real], batch.counts()["tokens"]
        smoothing = self.smoothing if self.training else 0.0
        total, log_probs = self.readout.loss(features, targets[real], smoothing, aside)
        terms = {"tokens": Term(total, count)}
        if self.coverage:
            terms["coverage"] = Term(repeated(_weights(whole), real), count, self.coverage)
        if self.links and batch.links is not None:
            held = chosen(by_name(whole), self.links_layer)
            total = links_loss(held, batch.links)
            terms["links"] = Term(total, batch.counts()["links"], self.links)
        if self.baseline is not None and self.training:
            terms |= self._drawn(self.baseline, whole, real, log_probs)
        return terms

    def start(self, batch: Batch, width: int) -> Progress:
        """Before the first token."""
        assert isinstance(batch, Pairs)
        state = self.decoder.start(self.encoder(batch.source), width)
        if not self.readout.copies:
            return Progress(state)
        return Progress(state, _copies(batch)[:, None], batch.extra)

    def step(self, tokens: Int[Tensor, "sentence beam"], state: State) -> Step:
        """One more token of each beam, `BEGIN` at first."""
        assert isinstance(state, Progress)
        stepped = self.decoder.step(self._known(tokens), state.decoder)
        aside = None
        if state.copies is not None and stepped.weights is not None:
            aside = Aside(stepped.weights, state.copies, state.extra)
        log_probs = self.readout.log_probs(stepped.features, aside)
        return Step(log_probs, Progress(stepped.state, state.copies, state.extra), stepped.weights)

    @torch.no_grad()
    def read(self, batch: Batch) -> Mapping[str, Float[Tensor, "batch target source"]]:
        """By name: "decoder", as the steps show it, and "decoder.3/head.1" where there are heads.

        Rows of padding are 0.
        """
        assert isinstance(batch, Pairs)
        inputs, _, real = self._target(batch)
        whole = self.decoder.whole(inputs, self.encoder(batch.source))
        padding = ~real[..., None]
        return {name: own.masked_fill(padding, 0.0) for name, own in by_name(whole).items()}

    def _target(self, batch: Pairs) -> tuple[Tensor, Tensor, Bool[Tensor, "batch target"]]:
        """What goes in, what must come out, and where neither is padding."""
        if batch.target is None:
            raise DataError("the batch has sources only. Give targets, too: Pairs(…, target=…).")
        ids = batch.target.ids
        real = Lengths(batch.target.lengths - 1).dense(1, ids.shape[1] - 1)[:, 0]
        return self._known(ids[:, :-1]), ids[:, 1:], real

    def _known(self, ids: Int[Tensor, "*batch"]) -> Int[Tensor, "*batch"]:
        """Words past the vocabulary are unknown to the decoder."""
        return ids.masked_fill(ids >= self.readout.vocabulary, UNKNOWN)

    def _aside(
        self, batch: Pairs, whole: Whole, real: Bool[Tensor, "batch target"]
    ) -> Aside | None:
        if not self.readout.copies:
            return None
        copies = _copies(batch)[:, None].expand(-1, real.shape[1], -1)
        return Aside(_weights(whole)[real], copies[real], batch.extra)

    def _drawn(
        self,
        baseline: nn.Linear,
        whole: Whole,
        real: Bool[Tensor, "batch target"],
        log_probs: Float[Tensor, " row"],
    ) -> dict[str, Term]:
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
            "reinforce": Term(-gain, len(reward), self.reinforce),
            "baseline": Term((foretold - reward).square().sum(), len(reward), self.baseline_weight),
        }


def _draws(decoder: Decoder) -> bool:
    """Must its attention be told what came of its draws?"""
    if not isinstance(decoder, Attentive):
        return False
    select = decoder.attention.select
    return isinstance(select, Hard) and select.gradient == "reinforce"


def _weights(whole: Whole) -> Float[Tensor, "batch target source"]:
    weights = whole.weights()
    assert weights is not None, "a decoder that reads has weights"
    return weights


def _copies(batch: Pairs) -> Int[Tensor, "batch source"]:
    if batch.copies is None:
        raise DataError(
            "the batch does not say what can be copied. Give each source token as an id of the "
            "target: Pairs(…, copies=…)."
        )
    return batch.copies
