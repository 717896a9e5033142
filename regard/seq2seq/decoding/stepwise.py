"""The loop of all searches whose ways never cross: greedy, sampling, forced."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.seq2seq.batch import BOS, EOS, Batch
from regard.seq2seq.decoding.backpointers import Backpointers, Ended
from regard.seq2seq.decoding.errors import DecodingError
from regard.seq2seq.decoding.output_limit import device_of
from regard.seq2seq.protocols import DecodeStep, Hypothesis, Stepper

LogProbs = Float[Tensor, "sentence beam vocabulary"]
Chosen = Int[Tensor, "sentence beam"]
Choose = Callable[[LogProbs, list[int], int], Chosen]
"""From log-probabilities, the sentences that these rows are, and the step: the next tokens."""


@torch.no_grad()
def stepwise(
    model: Stepper, batch: Batch, width: int, limits: list[int], choose: Choose
) -> list[list[Hypothesis]]:
    """Go `width` ways for each sentence; a way that became impossible is not in the answer."""
    ways = _Hypotheses(batch, width, limits)
    state = model.start(batch, width)
    while ways.live:
        made = model.step(ways.tokens, state)
        ways.advance(choose(made.log_probs, ways.live, ways.step), made)
        rest = (~ways.over.all(-1)).nonzero()[:, 0]
        state = made.state
        if len(rest) < len(ways.live):
            ways.keep(rest)
            state = state.keep(rest) if ways.live else state
    found = ways.trail.back(ways.finishes)
    return [sorted(ways, key=lambda way: -way.score) for ways in found]


class _Hypotheses:
    """All ways of a batch; rows are the sentences that have not ended on every way."""

    def __init__(self, batch: Batch, width: int, limits: list[int]) -> None:
        shape, device = (len(limits), width), device_of(batch)
        self.trail, self.finishes = Backpointers(batch), [list[Ended]() for _ in limits]
        self.step, self.live = 0, list(range(len(limits)))
        self.tokens = torch.full(shape, BOS, device=device)
        self.totals = torch.zeros(shape, dtype=torch.float64, device=device)
        self.over = torch.zeros(shape, dtype=torch.bool, device=device)
        self.limits = torch.tensor(limits, device=device)[:, None]
        self.same = torch.arange(width, device=device)

    def advance(self, tokens: Chosen, made: DecodeStep) -> None:
        """Take these tokens, but for ways that are over."""
        self.tokens = tokens.masked_fill(self.over, EOS)
        gained = made.log_probs.gather(-1, self.tokens[..., None])[..., 0]
        self.totals = self.totals.where(self.over, self.totals + gained)
        checked(self.totals, self.step)
        self.trail.add(self.live, self.tokens, self.same.expand_as(tokens), made.weights)
        self.step += 1
        cut, lost = self.limits == self.step, self.totals == -math.inf
        stopped = (cut | lost | (self.tokens == EOS)) & ~self.over
        self._finish(stopped)
        self.over = self.over | stopped

    def _finish(self, stopped: Bool[Tensor, "sentence beam"]) -> None:
        """Note the ways that stop here."""
        for row, beam in stopped.nonzero().tolist():
            total, ended = float(self.totals[row, beam]), int(self.tokens[row, beam]) == EOS
            if total > -math.inf:
                finish = Ended(self.live[row], self.step, beam, total, total, ended)
                self.finishes[self.live[row]].append(finish)

    def keep(self, rows: Int[Tensor, " kept"]) -> None:
        """Go on with these only."""
        self.live = [self.live[row] for row in rows.tolist()]
        self.tokens, self.totals = self.tokens[rows], self.totals[rows]
        self.over, self.limits = self.over[rows], self.limits[rows]


def checked(totals: Float[Tensor, "sentence beam"], step: int) -> None:
    """Raise if a model gave what is no number."""
    if bool(totals.isnan().any()):
        raise DecodingError(
            f"the model's log-probabilities of token {step + 1} are not numbers. "
            "Look for NaN in its weights, or decode in float32."
        )
