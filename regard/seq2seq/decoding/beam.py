"""Beam search.

Each step is four small moves: `top_k` expands the beams to twice as many candidates as there are
beams; those of the first `beam_size` that are EOS go to the n-best lists; the best others become
the beams; and a sentence leaves the batch when nothing better can come for it. Tokens are kept as
backpointers and read back at the end, so only the model's state is ever reordered.
"""

import math
from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.core.errors import OptionError
from regard.attention.core.options import check_int
from regard.seq2seq.batch import BOS, EOS, Batch
from regard.seq2seq.decoding.backpointers import Backpointers, Ended
from regard.seq2seq.decoding.bounds import MAX_BEAM_SIZE
from regard.seq2seq.decoding.greedy import Greedy
from regard.seq2seq.decoding.n_best import NBestLists
from regard.seq2seq.decoding.output_limit import (
    LengthLimit,
    OutputLimit,
    check_max_length,
    device_of,
    encoded_lengths,
    max_lengths,
)
from regard.seq2seq.decoding.penalty import Penalty, PowerPenalty
from regard.seq2seq.decoding.stepwise import check_not_nan
from regard.seq2seq.decoding.top_k import top_k
from regard.seq2seq.protocols import Hypothesis, Stepper


@dataclass(frozen=True)
class Beam:
    """Beam search, with a length penalty and early stopping.

    Hypotheses that have ended come first, by their score; one that was cut off at the maximum
    length is returned only if fewer have ended than were asked for. Beam size 1 is greedy search.

    Args:
        beam_size: How many hypotheses of a sentence are extended at a time.
        n_best: How many hypotheses are returned, the best first.
        penalty: By what a log-probability is divided to rank it.
        max_length: How many tokens an output may have, EOS included.
        early_stopping: Stop as soon as nothing better can come. The outputs are the same without.
        patience: Stop also as soon as patience · beam_size hypotheses have ended (Kasai 2022). Few
            sentences have a better one later. If None, only as `early_stopping` says.
    """

    beam_size: int = 5
    n_best: int = 1
    penalty: Penalty = field(default_factory=PowerPenalty)
    max_length: LengthLimit = field(default_factory=OutputLimit)
    early_stopping: bool = True
    patience: float | None = None

    def __post_init__(self) -> None:
        check_int("beam_size", self.beam_size, 1, MAX_BEAM_SIZE)
        check_int("n_best", self.n_best, 1, MAX_BEAM_SIZE)
        if self.n_best > self.beam_size:
            raise OptionError(
                f"n_best is {self.n_best} but beam_size is {self.beam_size}. "
                "A beam search returns at most beam_size hypotheses: give a greater one."
            )
        check_max_length(self.max_length)
        if self.patience is not None and not self.patience > 0:
            raise OptionError(f"patience is {self.patience}. Give more than 0, or None.")

    def __call__(self, model: Stepper, batch: Batch) -> list[list[Hypothesis]]:
        if self.beam_size > 1:
            return _BeamSearch(self, model, batch).run()
        greedy = Greedy(self.max_length)(model, batch)
        return [[self._ranked(hypothesis) for hypothesis in each] for each in greedy]

    def _ranked(self, hypothesis: Hypothesis) -> Hypothesis:
        length = len(hypothesis.tokens) + hypothesis.ended
        return replace(hypothesis, score=hypothesis.log_prob / self.penalty(length))


class _BeamSearch:
    """The search of one batch."""

    def __init__(self, options: Beam, model: Stepper, batch: Batch) -> None:
        self.options, self.model = options, model
        device, limits = device_of(batch), max_lengths(options.max_length, batch)
        shape = len(limits), options.beam_size
        self.state = model.start(batch, options.beam_size)
        self.backpointers = Backpointers(encoded_lengths(self.state))
        self.active = torch.arange(len(limits), device=device)
        self.limits = torch.tensor(limits, device=device)
        self.tokens = torch.full(shape, BOS, device=device)
        # All beams are the same at first, so that all but one must not count.
        self.log_probs = torch.full(shape, -math.inf, dtype=torch.float64, device=device)
        self.log_probs[:, 0] = 0.0
        self.n_best = NBestLists.empty(len(limits), options.n_best, device)
        self.ended = torch.zeros(len(limits), dtype=torch.long, device=device)
        self.cut_off: dict[int, list[Ended]] = {}
        divisors = [options.penalty(length) for length in range(1, max(limits, default=0) + 1)]
        self.divisors = torch.tensor(divisors, dtype=torch.float64, device=device)
        self.max_divisors = self.divisors.cummax(0).values if divisors else self.divisors

    @torch.no_grad()
    def run(self) -> list[list[Hypothesis]]:
        """Step until no sentence is active, then read the hypotheses back."""
        step, state = 0, self.state
        while len(self.active):
            output = self.model.step(self.tokens, state)
            parents = self._extend(output.log_probs, step, output.weights)
            step += 1
            done = self._done(step)
            state = output.state
            if bool(done.any()):
                rest = (~done).nonzero()[:, 0]
                self.active, self.tokens = self.active[rest], self.tokens[rest]
                self.log_probs, parents = self.log_probs[rest], parents[rest]
                state = state.keep(rest) if len(rest) else state
            if len(self.active):
                state = state.reorder(parents)
        ends = [self._best(sentence) for sentence in range(len(self.limits))]
        return self.backpointers.hypotheses(ends)

    def _extend(
        self,
        log_probs: Float[Tensor, "sentence beam vocabulary"],
        step: int,
        weights: Float[Tensor, "sentence beam source"] | None,
    ) -> Int[Tensor, "sentence beam"]:
        """Extend each beam by a token, apart from those that end here; which beam each was."""
        beam_size, vocab_size = self.options.beam_size, log_probs.shape[-1]
        totals, candidates = top_k(log_probs, self.log_probs, 2 * beam_size)
        check_not_nan(totals, step)
        parents, tokens = candidates // vocab_size, candidates % vocab_size
        is_eos = tokens == EOS
        finished = totals[:, :beam_size].masked_fill(~is_eos[:, :beam_size], -math.inf)
        self.ended[self.active] += (finished > -math.inf).sum(-1)
        self.n_best.insert(
            self.active, finished, parents[:, :beam_size], float(self.divisors[step]), step + 1
        )
        # Stable, so that the best that are not EOS come first, in order. There are enough of them:
        # each beam ends in one way only.
        order = is_eos.byte().sort(dim=-1, stable=True).indices[:, :beam_size]
        self.tokens, self.log_probs = tokens.gather(-1, order), totals.gather(-1, order)
        parents = parents.gather(-1, order)
        self.backpointers.add(self.active.tolist(), self.tokens, parents, weights)
        return parents

    def _done(self, length: int) -> Bool[Tensor, " sentence"]:
        """Which sentences end after so many tokens."""
        best, limits = self.log_probs[:, 0], self.limits[self.active]
        at_limit, impossible = limits == length, best == -math.inf
        for row in at_limit.nonzero()[:, 0].tolist():
            self._cut_off(row, length)
        done = at_limit | impossible
        if self.options.patience is not None:
            enough = max(self.options.n_best, self.options.patience * self.options.beam_size)
            done |= self.ended[self.active] >= enough
        if not self.options.early_stopping:
            return done
        # A log-probability only falls, and no length divides it by more than this.
        bound = best / self.max_divisors[limits - 1]
        return done | (bound <= self.n_best.scores[self.active, -1])

    def _cut_off(self, row: int, length: int) -> None:
        sentence, divisor = int(self.active[row]), float(self.divisors[length - 1])
        self.cut_off[sentence] = [
            Ended(sentence, length, beam, log_prob / divisor, log_prob, ended=False)
            for beam, log_prob in enumerate(self.log_probs[row].tolist())
            if log_prob > -math.inf
        ]

    def _best(self, sentence: int) -> list[Ended]:
        ends = [*self.n_best.of(sentence), *self.cut_off.get(sentence, [])]
        return ends[: self.options.n_best]
