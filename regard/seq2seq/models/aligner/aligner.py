"""The aligner: two readers, one for each direction, that learn to agree."""

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

NOTHING = 0.1
"""How probable it is at first that a word is about none."""

NEAR = 0.5
"""How much less probable a jump is at first for each place more, as a logarithm."""


class Cells(NamedTuple):
    """Logarithms of p(word | given) for every pair of a batch, and given none."""

    words: Float[Tensor, "batch target source"]
    nothing: Float[Tensor, "batch target"]


class JumpModel(nn.Module):
    """How one direction moves.

    Args:
        widest: Beyond it, all jumps are alike.
    """

    def __init__(self, widest: int) -> None:
        super().__init__()
        away = (torch.arange(-widest, widest + 1) - 1).abs()
        self.widths = nn.Parameter(-NEAR * away.float())
        self.empty = nn.Parameter(torch.tensor(NOTHING).logit())

    def chain(self, real: Bool[Tensor, "batch source"]) -> Transitions:
        """Its moves over sources of these lengths."""
        return Transitions.of(self.widths, self.empty, real)


class Aligner(nn.Module):
    """Hard attention both ways, with the alignment summed out.

    In training, each direction learns from what both find probable, √(p · q): what one takes for a
    translation and the other does not counts little, and what then is missing goes to no word
    (after Liang 2006).

    Args:
        source: The words of the source.
        target: Those of the target.
        jumps: The widest jump that is told apart.
    """

    def __init__(self, source: VocabularySide, target: VocabularySide, jumps: int = 8) -> None:
        super().__init__()
        self.lexicon = Lexicon(source, target)
        self.forward_reader, self.backward_reader = JumpModel(jumps), JumpModel(jumps)
        self._totals: dict[bool, Tensor] = {}

    def train(self, mode: bool = True) -> "Aligner":
        """In training, words change, and what was known of them is forgotten."""
        self._totals = {}
        return super().train(mode)

    def forward(self, batch: Batch) -> Loss:
        """What a target word costs given the source, and a source word given the target."""
        sources, targets = _sides(batch)
        there, back = self._sampled(sources, targets)
        forward, to_there = self._found(there, self.forward_reader, sources, targets)
        backward, to_back = self._found(back, self.backward_reader, targets, sources)
        agreed = (forward.words * backward.words.mT).sqrt()
        count = batch.counts()["tokens"]
        return {
            "forward": LossTerm(
                _learned(there, agreed, forward, to_there, targets), count, unit="tokens"
            ),
            "backward": LossTerm(
                _learned(back, agreed.mT, backward, to_back, sources), count, unit="tokens"
            ),
        }

    @torch.no_grad()
    def posteriors(self, batch: Batch) -> "AlignmentPosteriors":
        """How probable each link is, and both sides in all, by the whole vocabularies."""
        sources, targets = _sides(batch)
        there, back = self._full_vocabulary(sources, targets)
        forward, _ = self._found(there, self.forward_reader, sources, targets)
        backward, _ = self._found(back, self.backward_reader, targets, sources)
        total = forward.log_prob.sum() + backward.log_prob.sum()
        return AlignmentPosteriors(forward.words, backward.words.mT, total)

    def read(self, batch: Batch) -> Mapping[str, Float[Tensor, "batch target source"]]:
        """How probable each link is: "forward", by targets, and "backward", by sources."""
        found = self.posteriors(batch)
        return {"forward": found.forward, "backward": found.backward}

    def _found(
        self, cells: Cells, reader: JumpModel, given: "WordIds", told_: "WordIds"
    ) -> tuple[Posterior, Transitions]:
        chain = reader.chain(given.real)
        words = cells.words.detach().exp() * given.real[:, None]
        return posterior(words, cells.nothing.detach().exp(), chain, told_.lengths), chain

    def _sampled(self, sources: "WordIds", targets: "WordIds") -> tuple[Cells, Cells]:
        """Both directions by the words of the batch."""
        (rows, row), (columns, column) = sources.different(), targets.different()
        scores = self.lexicon.scores(rows, columns)
        source, target = self.lexicon.source, self.lexicon.target
        hidden = (
            torch.zeros_like(rows, dtype=scores.dtype),
            torch.zeros_like(columns, dtype=scores.dtype),
        )
        for each in hidden:
            each[0] = -torch.inf  # nobody says the word that is none
        there = scores + target.bias[columns] + hidden[1]
        back = scores.mT + source.bias[rows] + hidden[0]
        drawn = int(targets.lengths.sum()), int(sources.lengths.sum())
        return (
            _cells(there, target.share[columns], drawn[0], row, column),
            _cells(back, source.share[rows], drawn[1], column, row),
        )

    def _full_vocabulary(self, sources: "WordIds", targets: "WordIds") -> tuple[Cells, Cells]:
        """Both directions, normalised over the full vocabularies."""
        (rows, row), (columns, column) = sources.different(), targets.different()
        scores = self.lexicon.scores(rows, columns)
        there = scores + self.lexicon.target.bias[columns]
        back = scores.mT + self.lexicon.source.bias[rows]
        there = there - self._total(rows, backward=False)[:, None]
        back = back - self._total(columns, backward=True)[:, None]
        return (
            Cells(there[row[:, None], column[..., None]], there[0][column]),
            Cells(back[column[:, None], row[..., None]], back[0][row]),
        )

    def _total(self, words: Int[Tensor, " word"], *, backward: bool) -> Float[Tensor, " word"]:
        """Sums over a vocabulary, found once for each word that is asked for."""
        side = self.lexicon.target if backward else self.lexicon.source
        known = self._totals.setdefault(backward, torch.full_like(side.bias, torch.nan))
        new = words[known[words].isnan()]
        known[new] = self.lexicon.totals(new, backward=backward)
        return known[words]


class AlignmentPosteriors(NamedTuple):
    """Soft alignments of both directions: what is missing from 1 is about none."""

    forward: Float[Tensor, "batch target source"]
    backward: Float[Tensor, "batch target source"]
    log_prob: Float[Tensor, ""]
    """Of all targets given their sources, and of all sources given their targets."""


class WordIds(NamedTuple):
    """One side of a batch: ids, `NULL` for padding."""

    ids: Int[Tensor, "batch place"]
    lengths: Int[Tensor, " batch"]

    @property
    def real(self) -> Bool[Tensor, "batch place"]:
        return torch.arange(self.ids.shape[1], device=self.ids.device) < self.lengths[:, None]

    def different(self) -> tuple[Int[Tensor, " word"], Int[Tensor, "batch place"]]:
        """The words that there are, none first, and which of them stands where."""
        flat = torch.cat([self.ids.new_full((1,), NULL), self.ids.flatten()])
        words, places = flat.unique(return_inverse=True)
        return words, places[1:].view(self.ids.shape)


def _sides(batch: Batch) -> tuple[WordIds, WordIds]:
    """Source and target, without what a translator puts before and after them."""
    assert isinstance(batch, SourceTarget)
    if batch.target is None:
        raise DataError("a pair without a target cannot be aligned. Give both sides.")
    return _bare(batch.source, 0), _bare(batch.target, 1)


def _bare(tokens: Tokens, before: int) -> WordIds:
    lengths = tokens.lengths - 1 - before
    ids = tokens.ids[:, before:-1]
    return WordIds(ids.masked_fill(~WordIds(ids, lengths).real, NULL), lengths)


def _cells(
    scores: Float[Tensor, "given word"],
    share: Float[Tensor, " word"],
    drawn: int,
    given: Int[Tensor, "batch source"],
    words: Int[Tensor, "batch target"],
) -> Cells:
    """Every pair of a batch, and each word given none, in one go."""
    pairs = torch.broadcast_tensors(given[:, None], words[..., None])
    rows = torch.cat([pairs[0].flatten(), torch.zeros_like(words).flatten()])
    columns = torch.cat([pairs[1].flatten(), words.flatten()])
    # A cell of padding is about none; what it says is never looked at.
    found = sampled_log_prob(
        scores, share, drawn, rows, columns.clamp(min=1) if len(share) > 1 else columns
    )
    return Cells(
        found[: pairs[0].numel()].view(pairs[0].shape), found[pairs[0].numel() :].view(words.shape)
    )


def _learned(
    cells: Cells,
    agreed: Float[Tensor, "batch target source"],
    found: Posterior,
    chain: Transitions,
    words: WordIds,
) -> Float[Tensor, ""]:
    """What the words cost, with the slope of what they are expected to cost.

    The slope of a sum over alignments is that of its terms, each by its posterior; so nothing is
    kept of the way forward and backward.
    """
    real = words.real
    nothing = (1 - agreed.sum(-1)).clamp(min=0.0) * real
    moves = (found.jumps * chain.jumps.clamp(min=-80.0)).sum() + (
        found.first * chain.first.clamp(min=-80.0)
    ).sum()
    expected = (agreed * cells.words).sum() + (nothing * cells.nothing).sum() + moves
    expected += nothing.sum() * chain.empty + (real.sum() - nothing.sum()) * chain.present
    return -expected + expected.detach() - found.log_prob.sum()
