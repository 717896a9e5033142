"""Constraints as automata: which tokens may come next, and where each leads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

from regard.attention.core.options import check_int
from regard.seq2seq.batch import EOS

Place = TypeVar("Place")


@dataclass(frozen=True, slots=True)
class Allowed:
    """Only these tokens, or all but these."""

    tokens: frozenset[int]
    only: bool

    def __contains__(self, token: int) -> bool:
        return (token in self.tokens) == self.only


EVERYTHING = Allowed(frozenset(), only=False)


@runtime_checkable
class Grammar(Protocol[Place]):
    """A constraint: an automaton that reads the tokens of one hypothesis.

    A place is whatever it needs to remember; places are values and are never changed.
    """

    def start(self, item: int) -> Place:
        """Before the first token, for the item of this number."""

    def allowed(self, place: Place) -> Allowed:
        """What may come next."""

    def advance(self, place: Place, token: int) -> Place:
        """Where a token leads; only what is allowed is ever asked."""


@dataclass(frozen=True)
class Forbidden:
    """Some tokens never come: unknown words, say."""

    tokens: frozenset[int]

    def start(self, item: int) -> None:
        return None

    def allowed(self, place: None) -> Allowed:
        return Allowed(self.tokens, only=False)

    def advance(self, place: None, token: int) -> None:
        return None


@dataclass(frozen=True)
class AtLeast:
    """`END` comes after so many tokens at the earliest."""

    tokens: int

    def __post_init__(self) -> None:
        check_int("tokens", self.tokens)

    def start(self, item: int) -> int:
        return 0

    def allowed(self, place: int) -> Allowed:
        return Allowed(frozenset([EOS]), only=False) if place < self.tokens else EVERYTHING

    def advance(self, place: int, token: int) -> int:
        return place + 1


@dataclass(frozen=True)
class StartsWith:
    """The first tokens are given for some items; after them anything may come."""

    tokens: Mapping[int, Sequence[int]]

    def start(self, item: int) -> tuple[int, ...]:
        return tuple(self.tokens.get(item, ()))

    def allowed(self, place: tuple[int, ...]) -> Allowed:
        return Allowed(frozenset(place[:1]), only=True) if place else EVERYTHING

    def advance(self, place: tuple[int, ...], token: int) -> tuple[int, ...]:
        return place[1:]


@dataclass(frozen=True)
class Exact:
    """Nothing but this target, for each item."""

    tokens: Mapping[int, Sequence[int]]

    def start(self, item: int) -> tuple[int, ...]:
        return (*self.tokens[item], EOS)

    def allowed(self, place: tuple[int, ...]) -> Allowed:
        return Allowed(frozenset(place[:1]), only=True)

    def advance(self, place: tuple[int, ...], token: int) -> tuple[int, ...]:
        return place[1:]
