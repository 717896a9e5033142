"""Constraints as automata: which tokens may come next, and the state that each leads to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

from regard.attention.core.options import check_int
from regard.seq2seq.batch import EOS, Batch

GrammarState = TypeVar("GrammarState")


@dataclass(frozen=True, slots=True)
class AllowedTokens:
    """Only these tokens, or all but these."""

    tokens: frozenset[int]
    only: bool

    def __contains__(self, token: int) -> bool:
        return (token in self.tokens) == self.only


EVERYTHING = AllowedTokens(frozenset(), only=False)


@runtime_checkable
class Grammar(Protocol[GrammarState]):
    """A constraint: an automaton that reads the tokens of one hypothesis.

    A state is whatever it needs to know of them; states are values and are never changed.
    """

    def start(self, batch: Batch, row: int) -> GrammarState:
        """The state before the first token, for this row of the batch."""

    def allowed(self, state: GrammarState) -> AllowedTokens:
        """What may come next."""

    def advance(self, state: GrammarState, token: int) -> GrammarState:
        """The state after a token; only allowed tokens are ever given."""


@dataclass(frozen=True)
class Forbidden:
    """Some tokens are never output: UNK, say."""

    tokens: frozenset[int]

    def start(self, batch: Batch, row: int) -> None:
        return None

    def allowed(self, state: None) -> AllowedTokens:
        return AllowedTokens(self.tokens, only=False)

    def advance(self, state: None, token: int) -> None:
        return None


@dataclass(frozen=True)
class AtLeast:
    """EOS comes after at least so many tokens."""

    tokens: int

    def __post_init__(self) -> None:
        check_int("tokens", self.tokens)

    def start(self, batch: Batch, row: int) -> int:
        return 0

    def allowed(self, state: int) -> AllowedTokens:
        return AllowedTokens(frozenset([EOS]), only=False) if state < self.tokens else EVERYTHING

    def advance(self, state: int, token: int) -> int:
        return state + 1


@dataclass(frozen=True)
class StartsWith:
    """A given prefix for some items, by number; after it anything may come."""

    tokens: Mapping[int, Sequence[int]]

    def start(self, batch: Batch, row: int) -> tuple[int, ...]:
        return tuple(self.tokens.get(batch.items[row], ()))

    def allowed(self, state: tuple[int, ...]) -> AllowedTokens:
        return AllowedTokens(frozenset(state[:1]), only=True) if state else EVERYTHING

    def advance(self, state: tuple[int, ...], token: int) -> tuple[int, ...]:
        return state[1:]


@dataclass(frozen=True)
class Exact:
    """A given target for each item, by number, and nothing else."""

    tokens: Mapping[int, Sequence[int]]

    def start(self, batch: Batch, row: int) -> tuple[int, ...]:
        return (*self.tokens[batch.items[row]], EOS)

    def allowed(self, state: tuple[int, ...]) -> AllowedTokens:
        return AllowedTokens(frozenset(state[:1]), only=True)

    def advance(self, state: tuple[int, ...], token: int) -> tuple[int, ...]:
        return state[1:]
