"""Constrained decoding: a stepper around a stepper that masks what a grammar forbids."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from regard.seq2seq.batch import Batch
from regard.seq2seq.decoding.errors import DecodingError
from regard.seq2seq.decoding.grammars import EVERYTHING, AllowedTokens, Grammar
from regard.seq2seq.decoding.output_limit import HasSourceLengths
from regard.seq2seq.decoding.shapes import LogProbs
from regard.seq2seq.protocols import DecodeStep, Stepper, StepperState

Positions = tuple[tuple["GrammarPosition", ...], ...]
"""For each sentence, of each beam."""


@dataclass(frozen=True)
class Constrained:
    """A model that can only output what a grammar allows.

    What is forbidden has a log-probability of −∞; the others keep theirs, so that scores stay the
    model's own. Several constraints: wrap several times.
    """

    model: Stepper
    grammar: Grammar[Any]

    def start(self, batch: Batch, width: int) -> "ConstrainedState":
        first = [self._position(self.grammar.start(batch, row)) for row in range(len(batch.items))]
        return ConstrainedState(
            self.model.start(batch, width), tuple((position,) * width for position in first), True
        )

    def step(self, tokens: Int[Tensor, "sentence beam"], state: StepperState) -> DecodeStep:
        if not isinstance(state, ConstrainedState):
            raise DecodingError(
                f"a constrained model was given a {type(state).__name__} of another stepper. "
                "Give it what its own start and step returned."
            )
        positions = state.positions
        if not state.at_start:
            positions = self._advanced(positions, tokens.tolist())
        output = self.model.step(tokens, state.inner)
        after = ConstrainedState(output.state, positions, False)
        return DecodeStep(_masked(output.log_probs, positions), after, output.weights)

    def _advanced(self, positions: Positions, tokens: list[list[int]]) -> Positions:
        return tuple(
            tuple(self._next(position, token) for position, token in zip(beams, row, strict=True))
            for beams, row in zip(positions, tokens, strict=True)
        )

    def _next(self, position: "GrammarPosition", token: int) -> "GrammarPosition":
        if position.dead or token not in position.allowed:
            return _DEAD  # the beam is impossible or has ended: what follows does not matter
        return self._position(self.grammar.advance(position.state, token))

    def _position(self, state: object) -> "GrammarPosition":
        return GrammarPosition(state, self.grammar.allowed(state))


@dataclass(frozen=True, slots=True)
class GrammarPosition:
    """The grammar's state for one hypothesis, and what it allows next."""

    state: Any
    allowed: AllowedTokens
    dead: bool = False


_DEAD = GrammarPosition(None, EVERYTHING, dead=True)


@dataclass(frozen=True, slots=True)
class ConstrainedState:
    """A model's state, and each hypothesis's position in the grammar."""

    inner: StepperState
    positions: Positions
    at_start: bool
    """Is the next token BOS?"""

    @property
    def source_lengths(self) -> Int[Tensor, " sentence"] | None:
        """The model's."""
        return self.inner.source_lengths if isinstance(self.inner, HasSourceLengths) else None

    def reorder(self, beams: Int[Tensor, "sentence beam"]) -> "ConstrainedState":
        rows = zip(self.positions, beams.tolist(), strict=True)
        positions = tuple(tuple(old[beam] for beam in row) for old, row in rows)
        return ConstrainedState(self.inner.reorder(beams), positions, self.at_start)

    def keep(self, sentences: Int[Tensor, " kept"]) -> "ConstrainedState":
        positions = tuple(self.positions[sentence] for sentence in sentences.tolist())
        return ConstrainedState(self.inner.keep(sentences), positions, self.at_start)


def _masked(log_probs: LogProbs, positions: Positions) -> LogProbs:
    """With −∞ for what the grammar forbids."""
    groups: dict[AllowedTokens, list[int]] = {}
    for row, position in enumerate(position for beams in positions for position in beams):
        groups.setdefault(position.allowed, []).append(row)
    masked = log_probs.clone(memory_format=torch.contiguous_format)
    flat = masked.view(-1, log_probs.shape[-1])
    for allowed, rows in groups.items():
        _mask_rows(flat, torch.tensor(rows, device=flat.device), allowed)
    return masked


def _mask_rows(log_probs: Tensor, rows: Tensor, allowed: AllowedTokens) -> None:
    """Mask in these rows what is not allowed, in place."""
    named = [token for token in allowed.tokens if token < log_probs.shape[-1]]
    tokens = torch.tensor(named, dtype=torch.int64, device=log_probs.device)
    if allowed.only:
        kept = log_probs[rows[:, None], tokens]
        log_probs[rows] = -math.inf
        log_probs[rows[:, None], tokens] = kept
    elif named:
        log_probs[rows[:, None], tokens] = -math.inf
