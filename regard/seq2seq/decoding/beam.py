"""Beam search: the best few ways at once.

Each step is four small moves: `top` expands every beam to twice as many candidates as there are
beams; those of the first `width` that have ended are set aside; the best that have not ended go on;
and a sentence leaves the batch when nothing better can come for it. What was chosen is kept as a
trail and read back at the end, so only the model's state is ever reordered.
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
from regard.seq2seq.decoding.bounds import MOST_HYPOTHESES, MOST_TOKENS
from regard.seq2seq.decoding.finished import Finished
from regard.seq2seq.decoding.greedy import Greedy
from regard.seq2seq.decoding.output_limit import OutputLimit, device_of, limits
from regard.seq2seq.decoding.penalty import Penalty, PowerPenalty
from regard.seq2seq.decoding.stepwise import checked
from regard.seq2seq.decoding.top_k import top
from regard.seq2seq.protocols import Hypothesis, Stepper

Scores = Float[Tensor, "sentence beam"]
Numbers = Int[Tensor, "sentence beam"]


@dataclass(frozen=True)
class Beam:
    """The best hypotheses that a search with so many ways at once finds.

    Hypotheses that have ended come first, by their score; one that was cut off at the longest
    length is given only if fewer have ended than were asked for. With one way it is greedy search.

    Args:
        width: How many ways are followed at once.
        best: How many hypotheses are given back, the best first.
        penalty: By what a log-probability is divided to rank it.
        longest: How many tokens an answer may have, `END` among them.
        stop: Stop as soon as nothing better can come. The answers are the same without it.
        patience: Stop as soon as so many times `width` hypotheses have ended, too (Kasai 2022). Few
            sentences have a better one later. If None, only as `stop` says.
    """

    width: int = 5
    best: int = 1
    penalty: Penalty = field(default_factory=PowerPenalty)
    longest: OutputLimit | int = field(default_factory=OutputLimit)
    stop: bool = True
    patience: float | None = None

    def __post_init__(self) -> None:
        check_int("width", self.width, 1, MOST_HYPOTHESES)
        check_int("best", self.best, 1, MOST_HYPOTHESES)
        if self.best > self.width:
            raise OptionError(
                f"best is {self.best} but width is {self.width}. "
                "A beam finds no more hypotheses than it is wide: give a greater width."
            )
        if not isinstance(self.longest, OutputLimit):
            check_int("longest", self.longest, 1, MOST_TOKENS)
        if self.patience is not None and not self.patience > 0:
            raise OptionError(f"patience is {self.patience}. Give more than 0, or None.")

    def __call__(self, model: Stepper, batch: Batch) -> list[list[Hypothesis]]:
        if self.width > 1:
            return _BeamSearch(self, model, batch).run()
        found = Greedy(self.longest)(model, batch)
        return [[self._ranked(way) for way in ways] for ways in found]

    def _ranked(self, way: Hypothesis) -> Hypothesis:
        return replace(way, score=way.log_prob / self.penalty(len(way.tokens) + way.ended))


class _BeamSearch:
    """One batch on its way."""

    def __init__(self, options: Beam, model: Stepper, batch: Batch) -> None:
        self.options, self.model = options, model
        device, width = device_of(batch), options.width
        most = limits(options.longest, batch)
        self.trail = Backpointers(batch)
        self.start = model.start(batch, width)
        self.live = torch.arange(len(most), device=device)
        self.limits = torch.tensor(most, device=device)
        self.tokens = torch.full((len(most), width), BOS, device=device)
        # All beams are the same at first, so that all but one must not count.
        self.totals = torch.full((len(most), width), -math.inf, dtype=torch.float64, device=device)
        self.totals[:, 0] = 0.0
        self.finished = Finished.none(len(most), options.best, device)
        self.ended = torch.zeros(len(most), dtype=torch.long, device=device)
        self.cut: dict[int, list[Ended]] = {}
        divisors = [options.penalty(length) for length in range(1, max(most, default=0) + 1)]
        self.divisors = torch.tensor(divisors, dtype=torch.float64, device=device)
        self.greatest = self.divisors.cummax(0).values if divisors else self.divisors

    @torch.no_grad()
    def run(self) -> list[list[Hypothesis]]:
        """Step until no sentence is left, then read back."""
        state, step = self.start, 0
        while len(self.live):
            made = self.model.step(self.tokens, state)
            parents = self._choose(made.log_probs, step, made.weights)
            step += 1
            done = self._done(step)
            state = made.state
            if bool(done.any()):
                rest = (~done).nonzero()[:, 0]
                self.live, self.tokens, parents = self.live[rest], self.tokens[rest], parents[rest]
                self.totals = self.totals[rest]
                state = state.keep(rest) if len(rest) else state
            if len(self.live):
                state = state.reorder(parents)
        return self.trail.back([self._best(sentence) for sentence in range(len(self.limits))])

    def _choose(
        self,
        log_probs: Float[Tensor, "sentence beam vocabulary"],
        step: int,
        weights: Float[Tensor, "sentence beam source"] | None,
    ) -> Numbers:
        """Set aside what ends here, go on with the rest; say whence each beam came."""
        width, words = self.options.width, log_probs.shape[-1]
        totals, numbers = top(log_probs, self.totals, 2 * width)
        checked(totals, step)
        parents, tokens = numbers // words, numbers % words
        ends = tokens == EOS
        first = totals[:, :width].masked_fill(~ends[:, :width], -math.inf)
        self.ended[self.live] += (first > -math.inf).sum(-1)
        divisor = float(self.divisors[step])
        self.finished.take(self.live, first, parents[:, :width], divisor, step + 1)
        # Stable, so that the best that have not ended come first in their order. There are enough
        # of them: each beam ends in one way only.
        order = ends.byte().sort(dim=-1, stable=True).indices[:, :width]
        self.tokens, self.totals = tokens.gather(-1, order), totals.gather(-1, order)
        parents = parents.gather(-1, order)
        self.trail.add(self.live.tolist(), self.tokens, parents, weights)
        return parents

    def _done(self, length: int) -> Bool[Tensor, " sentence"]:
        """Which sentences are at their end after so many tokens."""
        best, most = self.totals[:, 0], self.limits[self.live]
        cut, dead = most == length, best == -math.inf
        for row in cut.nonzero()[:, 0].tolist():
            self._cut_off(row, length)
        over = cut | dead
        if self.options.patience is not None:
            enough = max(self.options.best, self.options.patience * self.options.width)
            over |= self.ended[self.live] >= enough
        if not self.options.stop:
            return over
        # A log-probability only falls, and no length divides it by more than this.
        bound = best / self.greatest[most - 1]
        return over | (bound <= self.finished.scores[self.live, -1])

    def _cut_off(self, row: int, length: int) -> None:
        sentence, divisor = int(self.live[row]), float(self.divisors[length - 1])
        self.cut[sentence] = [
            Ended(sentence, length, beam, total / divisor, total, ended=False)
            for beam, total in enumerate(self.totals[row].tolist())
            if total > -math.inf
        ]

    def _best(self, sentence: int) -> list[Ended]:
        ways = [*self.finished.of(sentence), *self.cut.get(sentence, [])]
        return ways[: self.options.best]
