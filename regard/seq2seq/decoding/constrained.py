"""A constraint on a model: a stepper around a stepper."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.seq2seq.batch import Batch
from regard.seq2seq.decoding.errors import DecodingError
from regard.seq2seq.decoding.grammars import EVERYTHING, Allowed, Grammar
from regard.seq2seq.protocols import DecodeStep, Stepper, StepperState

LogProbs = Float[Tensor, "sentence beam vocabulary"]
Places = tuple[tuple["GrammarPosition", ...], ...]


@dataclass(frozen=True)
class Constrained:
    """A model that can only say what a grammar allows.

    What is forbidden has a log-probability of −∞; the others keep theirs, so that scores stay the
    model's own. Several constraints: wrap several times.
    """

    model: Stepper
    grammar: Grammar[Any]

    def start(self, batch: Batch, width: int) -> "ConstrainedState":
        spots = [_position(self.grammar, self.grammar.start(item)) for item in batch.items]
        return ConstrainedState(
            self.model.start(batch, width), tuple((spot,) * width for spot in spots), True
        )

    def step(self, tokens: Int[Tensor, "sentence beam"], state: StepperState) -> DecodeStep:
        if not isinstance(state, ConstrainedState):
            raise DecodingError(
                f"a constrained model was given a {type(state).__name__} of another stepper. "
                "Give it what its own start and step returned."
            )
        places = state.places if state.fresh else self._advanced(state.places, tokens.tolist())
        made = self.model.step(tokens, state.inner)
        log_probs = _hidden(made.log_probs, places)
        return DecodeStep(log_probs, ConstrainedState(made.state, places, False), made.weights)

    def _advanced(self, places: Places, tokens: list[list[int]]) -> Places:
        return tuple(
            tuple(self._next(spot, token) for spot, token in zip(spots, row, strict=True))
            for spots, row in zip(places, tokens, strict=True)
        )

    def _next(self, spot: "GrammarPosition", token: int) -> "GrammarPosition":
        if spot.lost or token not in spot.allowed:
            return _DEAD_END  # a beam that counts no more, or that has ended: say what you like
        return _position(self.grammar, self.grammar.advance(spot.place, token))


@dataclass(frozen=True, slots=True)
class GrammarPosition:
    """Where one hypothesis stands in the grammar, and what may come next there."""

    place: Any
    allowed: Allowed
    lost: bool = False


_DEAD_END = GrammarPosition(None, EVERYTHING, lost=True)


def _position(grammar: Grammar[Any], place: object) -> GrammarPosition:
    return GrammarPosition(place, grammar.allowed(place))


@dataclass(frozen=True, slots=True)
class ConstrainedState:
    """A model's state, and where each hypothesis stands."""

    inner: StepperState
    places: Places
    fresh: bool
    """Is the next token still `BEGIN`?"""

    def reorder(self, beams: Int[Tensor, "sentence beam"]) -> "ConstrainedState":
        rows = zip(self.places, beams.tolist(), strict=True)
        places = tuple(tuple(spots[beam] for beam in row) for spots, row in rows)
        return ConstrainedState(self.inner.reorder(beams), places, self.fresh)

    def keep(self, sentences: Int[Tensor, " kept"]) -> "ConstrainedState":
        places = tuple(self.places[sentence] for sentence in sentences.tolist())
        return ConstrainedState(self.inner.keep(sentences), places, self.fresh)


def _hidden(log_probs: LogProbs, places: Places) -> LogProbs:
    """With −∞ where the grammar says no."""
    alike: dict[Allowed, list[int]] = {}
    for number, spot in enumerate(spot for spots in places for spot in spots):
        alike.setdefault(spot.allowed, []).append(number)
    hidden = log_probs.clone(memory_format=torch.contiguous_format)
    rows = hidden.view(-1, log_probs.shape[-1])
    for allowed, numbers in alike.items():
        _hide(rows, torch.tensor(numbers, device=rows.device), allowed)
    return hidden


def _hide(rows: Tensor, numbers: Tensor, allowed: Allowed) -> None:
    """Hide in these rows what is not allowed there."""
    named = [token for token in allowed.tokens if token < rows.shape[-1]]
    index = torch.tensor(named, dtype=torch.int64, device=rows.device)
    if allowed.only:
        kept = rows[numbers[:, None], index]
        rows[numbers] = -math.inf
        rows[numbers[:, None], index] = kept
    elif named:
        rows[numbers[:, None], index] = -math.inf
