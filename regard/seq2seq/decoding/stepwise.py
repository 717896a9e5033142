"""The loop of all searches whose beams are never reordered: greedy, sampling, forced."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.seq2seq.batch import BOS, EOS, Batch
from regard.seq2seq.decoding.backpointers import Backpointers, Ended
from regard.seq2seq.decoding.errors import DecodingError
from regard.seq2seq.decoding.output_limit import device_of, encoded_lengths
from regard.seq2seq.decoding.shapes import LogProbs, TokenIds
from regard.seq2seq.protocols import DecodeStep, Hypothesis, Stepper

Choose = Callable[[LogProbs, list[int], int], TokenIds]
"""From log-probabilities, the sentences that these rows are, and the step: the next tokens."""


@torch.no_grad()
def stepwise(
    model: Stepper, batch: Batch, beams: int, limits: list[int], choose: Choose
) -> list[list[Hypothesis]]:
    """Extend so many beams of each sentence; one that becomes impossible is not returned."""
    state = model.start(batch, beams)
    search = _Stepwise(Backpointers(encoded_lengths(state)), device_of(batch), beams, limits)
    while search.active:
        output = model.step(search.tokens, state)
        search.advance(choose(output.log_probs, search.active, search.step), output)
        rest = (~search.done.all(-1)).nonzero()[:, 0]
        state = output.state
        if len(rest) < len(search.active):
            search.keep(rest)
            state = state.keep(rest) if search.active else state
    hypotheses = search.backpointers.hypotheses(search.ends)
    return [sorted(each, key=lambda hypothesis: -hypothesis.score) for each in hypotheses]


class _Stepwise:
    """The beams of a batch; its rows are the sentences of which some beam is not done."""

    def __init__(
        self, backpointers: Backpointers, device: torch.device, beams: int, limits: list[int]
    ) -> None:
        shape = len(limits), beams
        self.backpointers, self.ends = backpointers, [list[Ended]() for _ in limits]
        self.step, self.active = 0, list(range(len(limits)))
        self.tokens = torch.full(shape, BOS, device=device)
        self.log_probs = torch.zeros(shape, dtype=torch.float64, device=device)
        self.done = torch.zeros(shape, dtype=torch.bool, device=device)
        self.limits = torch.tensor(limits, device=device)[:, None]
        self.parents = torch.arange(beams, device=device)

    def advance(self, tokens: TokenIds, output: DecodeStep) -> None:
        """Append these tokens to the beams that are not done."""
        self.tokens = tokens.masked_fill(self.done, EOS)
        chosen = output.log_probs.gather(-1, self.tokens[..., None])[..., 0]
        self.log_probs = self.log_probs.where(self.done, self.log_probs + chosen)
        check_not_nan(self.log_probs, self.step)
        parents = self.parents.expand_as(tokens)
        self.backpointers.add(self.active, self.tokens, parents, output.weights)
        self.step += 1
        at_limit, impossible = self.limits == self.step, self.log_probs == -math.inf
        stopped = (at_limit | impossible | (self.tokens == EOS)) & ~self.done
        self._end(stopped)
        self.done = self.done | stopped

    def _end(self, stopped: Bool[Tensor, "sentence beam"]) -> None:
        """Note the hypotheses that end here."""
        for row, beam in stopped.nonzero().tolist():
            log_prob = float(self.log_probs[row, beam])
            ended = int(self.tokens[row, beam]) == EOS
            if log_prob > -math.inf:
                sentence = self.active[row]
                end = Ended(sentence, self.step, beam, log_prob, log_prob, ended)
                self.ends[sentence].append(end)

    def keep(self, rows: Int[Tensor, " kept"]) -> None:
        """These rows only."""
        self.active = [self.active[row] for row in rows.tolist()]
        self.tokens, self.log_probs = self.tokens[rows], self.log_probs[rows]
        self.done, self.limits = self.done[rows], self.limits[rows]


def check_not_nan(log_probs: Float[Tensor, "sentence candidate"], step: int) -> None:
    """Raise if a model gave NaN."""
    if bool(log_probs.isnan().any()):
        raise DecodingError(
            f"the model's log-probabilities of token {step + 1} are NaN. "
            "Look for NaN in its weights, or decode in float32."
        )
