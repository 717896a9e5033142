"""The aligner: two HMMs, one for each direction, over one lexicon, trained to agree."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.seq2seq.batch import Batch, SourceTarget, Tokens
from regard.seq2seq.errors import DataError
from regard.seq2seq.models.aligner.hmm import Posterior, Transitions, posterior
from regard.seq2seq.models.aligner.lexicon import NULL, Lexicon, VocabularySide, sampled_log_prob
from regard.seq2seq.protocols import Loss, LossTerm

INITIAL_NULL = 0.1
"""Initial probability that a word is aligned to NULL."""

INITIAL_JUMP_DECAY = 0.5
"""By how much the initial log-probability of a jump falls with each position."""


class EmissionLogProbs(NamedTuple):
    """log p(word | given) for every pair of positions in a batch, and given NULL."""

    words: Float[Tensor, "batch target source"]
    null: Float[Tensor, "batch target"]


class JumpModel(nn.Module):
    """The transition parameters of one direction.

    Args:
        widest: Wider jumps share one parameter.
    """

    def __init__(self, widest: int) -> None:
        super().__init__()
        distance = (torch.arange(-widest, widest + 1) - 1).abs()
        self.widths = nn.Parameter(-INITIAL_JUMP_DECAY * distance.float())
        self.empty = nn.Parameter(torch.tensor(INITIAL_NULL).logit())

    def transitions(self, real: Bool[Tensor, "batch source"]) -> Transitions:
        """The transition log-probabilities over sources with this padding mask."""
        return Transitions.of(self.widths, self.empty, real)


class Aligner(nn.Module):
    """Hard attention in both directions, with the alignment marginalised out.

    In training, each direction is fitted to the agreement of both posteriors, √(p · q): a link that
    only one of them finds counts little, and the missing probability goes to NULL (after Liang
    2006).

    Args:
        source: The source vocabulary.
        target: The target vocabulary.
        jumps: The widest jump with a parameter of its own.
    """

    def __init__(self, source: VocabularySide, target: VocabularySide, jumps: int = 8) -> None:
        super().__init__()
        self.lexicon = Lexicon(source, target)
        self.forward_jumps, self.backward_jumps = JumpModel(jumps), JumpModel(jumps)
        self._totals: dict[bool, Tensor] = {}

    def train(self, mode: bool = True) -> "Aligner":
        """Clear the cached normalisers: in training, the parameters change."""
        self._totals = {}
        return super().train(mode)

    def forward(self, batch: Batch) -> Loss:
        """The negative log-likelihood of the target given the source, and of the reverse."""
        sources, targets = _sides(batch)
        log_probs, reverse = self._sampled(sources, targets)
        forward, moves = self._posterior(log_probs, self.forward_jumps, sources, targets)
        backward, reverse_moves = self._posterior(reverse, self.backward_jumps, targets, sources)
        agreed = (forward.words * backward.words.mT).sqrt()
        count = batch.counts()["tokens"]
        totals = {
            "forward": _expected_loss(log_probs, agreed, forward, moves, targets),
            "backward": _expected_loss(reverse, agreed.mT, backward, reverse_moves, sources),
        }
        return {name: LossTerm(total, count, unit="tokens") for name, total in totals.items()}

    @torch.no_grad()
    def posteriors(self, batch: Batch) -> "AlignmentPosteriors":
        """The posteriors of both directions, normalised over the full vocabularies."""
        sources, targets = _sides(batch)
        log_probs, reverse = self._normalized(sources, targets)
        forward, _ = self._posterior(log_probs, self.forward_jumps, sources, targets)
        backward, _ = self._posterior(reverse, self.backward_jumps, targets, sources)
        total = forward.log_prob.sum() + backward.log_prob.sum()
        return AlignmentPosteriors(forward.words, backward.words.mT, total)

    def read(self, batch: Batch) -> Mapping[str, Float[Tensor, "batch target source"]]:
        """The posterior of each link: "forward", by targets, and "backward", by sources."""
        found = self.posteriors(batch)
        return {"forward": found.forward, "backward": found.backward}

    def _posterior(
        self,
        log_probs: EmissionLogProbs,
        jumps: JumpModel,
        given: "WordIds",
        generated: "WordIds",
    ) -> tuple[Posterior, Transitions]:
        moves = jumps.transitions(given.real)
        words = log_probs.words.detach().exp() * given.real[:, None]
        return posterior(words, log_probs.null.detach().exp(), moves, generated.lengths), moves

    def _sampled(
        self, sources: "WordIds", targets: "WordIds"
    ) -> tuple[EmissionLogProbs, EmissionLogProbs]:
        """Both directions by a sampled softmax over the words of the batch."""
        (rows, row), (columns, column) = sources.unique(), targets.unique()
        scores = self.lexicon.scores(rows, columns)
        source, target = self.lexicon.source, self.lexicon.target
        hidden = (
            torch.zeros_like(rows, dtype=scores.dtype),
            torch.zeros_like(columns, dtype=scores.dtype),
        )
        for each in hidden:
            each[0] = -torch.inf  # NULL is never generated
        logits = scores + target.bias[columns] + hidden[1]
        reverse = scores.mT + source.bias[rows] + hidden[0]
        drawn = int(targets.lengths.sum()), int(sources.lengths.sum())
        return (
            _emissions(logits, target.share[columns], drawn[0], row, column),
            _emissions(reverse, source.share[rows], drawn[1], column, row),
        )

    def _normalized(
        self, sources: "WordIds", targets: "WordIds"
    ) -> tuple[EmissionLogProbs, EmissionLogProbs]:
        """Both directions by a softmax over the full vocabularies."""
        (rows, row), (columns, column) = sources.unique(), targets.unique()
        scores = self.lexicon.scores(rows, columns)
        logits = scores + self.lexicon.target.bias[columns]
        reverse = scores.mT + self.lexicon.source.bias[rows]
        log_probs = logits - self._total(rows, backward=False)[:, None]
        reverse = reverse - self._total(columns, backward=True)[:, None]
        return (
            EmissionLogProbs(log_probs[row[:, None], column[..., None]], log_probs[0][column]),
            EmissionLogProbs(reverse[column[:, None], row[..., None]], reverse[0][row]),
        )

    def _total(self, words: Int[Tensor, " word"], *, backward: bool) -> Float[Tensor, " word"]:
        """Log-normalisers over a vocabulary, cached for each word."""
        side = self.lexicon.target if backward else self.lexicon.source
        cached = self._totals.setdefault(backward, torch.full_like(side.bias, torch.nan))
        new = words[cached[words].isnan()]
        cached[new] = self.lexicon.totals(new, backward=backward)
        return cached[words]


class AlignmentPosteriors(NamedTuple):
    """Soft alignments of both directions: what a row lacks to 1 is the probability of NULL."""

    forward: Float[Tensor, "batch target source"]
    backward: Float[Tensor, "batch target source"]
    log_prob: Float[Tensor, ""]
    """Of all targets given their sources, plus of all sources given their targets."""


class WordIds(NamedTuple):
    """One side of a batch: ids, `NULL` for padding."""

    ids: Int[Tensor, "batch place"]
    lengths: Int[Tensor, " batch"]

    @property
    def real(self) -> Bool[Tensor, "batch place"]:
        return torch.arange(self.ids.shape[1], device=self.ids.device) < self.lengths[:, None]

    def unique(self) -> tuple[Int[Tensor, " word"], Int[Tensor, "batch place"]]:
        """The distinct words, NULL first, and for each position the index of its word."""
        flat = torch.cat([self.ids.new_full((1,), NULL), self.ids.flatten()])
        words, places = flat.unique(return_inverse=True)
        return words, places[1:].view(self.ids.shape)


def _sides(batch: Batch) -> tuple[WordIds, WordIds]:
    """Source and target without BOS and EOS."""
    assert isinstance(batch, SourceTarget)
    if batch.target is None:
        raise DataError("a pair without a target cannot be aligned. Give both sides.")
    return _strip_special(batch.source, 0), _strip_special(batch.target, 1)


def _strip_special(tokens: Tokens, before: int) -> WordIds:
    lengths = tokens.lengths - 1 - before
    ids = tokens.ids[:, before:-1]
    return WordIds(ids.masked_fill(~WordIds(ids, lengths).real, NULL), lengths)


def _emissions(
    scores: Float[Tensor, "given word"],
    share: Float[Tensor, " word"],
    drawn: int,
    given: Int[Tensor, "batch source"],
    words: Int[Tensor, "batch target"],
) -> EmissionLogProbs:
    """Every pair of positions in a batch, and each word given NULL, in one call."""
    pairs = torch.broadcast_tensors(given[:, None], words[..., None])
    rows = torch.cat([pairs[0].flatten(), torch.zeros_like(words).flatten()])
    columns = torch.cat([pairs[1].flatten(), words.flatten()])
    # A padding position is NULL, which cannot be generated: its value is never used.
    found = sampled_log_prob(
        scores, share, drawn, rows, columns.clamp(min=1) if len(share) > 1 else columns
    )
    return EmissionLogProbs(
        found[: pairs[0].numel()].view(pairs[0].shape), found[pairs[0].numel() :].view(words.shape)
    )


def _expected_loss(
    log_probs: EmissionLogProbs,
    agreed: Float[Tensor, "batch target source"],
    found: Posterior,
    moves: Transitions,
    words: WordIds,
) -> Float[Tensor, ""]:
    """The negative log-likelihood, with the gradient of the expected complete-data loss (EM).

    The gradient of a log-sum over alignments is the posterior-weighted gradient of its terms; so
    autograd need not see the forward–backward recursion.
    """
    real = words.real
    null = (1 - agreed.sum(-1)).clamp(min=0.0) * real
    jumps = (found.jumps * moves.jumps.clamp(min=-80.0)).sum() + (
        found.first * moves.first.clamp(min=-80.0)
    ).sum()
    expected = (agreed * log_probs.words).sum() + (null * log_probs.null).sum() + jumps
    expected += null.sum() * moves.empty + (real.sum() - null.sum()) * moves.present
    return -expected + expected.detach() - found.log_prob.sum()
