"""In which order words stand on a line, where Hebrew or Arabic runs from right to left."""

import unicodedata
from collections.abc import Sequence

LEFT, RIGHT, NUMBER, NEUTRAL = "left", "right", "number", "neutral"
KINDS = {"L": LEFT, "R": RIGHT, "AL": RIGHT, "EN": NUMBER, "AN": NUMBER}
BETWEEN_DIGITS = set("./:-,٫٬")


def right_to_left(words: Sequence[str]) -> bool:
    """Is it a text that runs from right to left? Its first letter says so.

    >>> right_to_left(["3", "مايو", "abc"]), right_to_left(["abc", "مايو"])
    (True, False)
    """
    kinds = (KINDS.get(unicodedata.bidirectional(c)) for word in words for c in word)
    return next((kind for kind in kinds if kind in (LEFT, RIGHT)), LEFT) == RIGHT


def visual_order(words: Sequence[str]) -> list[int]:
    """The places of the words as they stand from left to right.

    Unicode's algorithm for whole words: letters have the direction of their script, numbers run
    from left to right, and what has none goes with its neighbours or else with the text.

    >>> visual_order(["אבא", "קרא", "New", "York", "Times"])
    [2, 3, 4, 1, 0]
    """
    levels = _levels(words)
    order = list(range(len(words)))
    for level in range(max(levels, default=0), 0, -1):
        order = _turned(order, levels, level)
    return order


def _turned(order: list[int], levels: Sequence[int], level: int) -> list[int]:
    """With each run of at least this level the other way round."""
    found: list[int] = []
    run: list[int] = []
    for place in order:
        if levels[place] >= level:
            run.append(place)
        else:
            found += [*reversed(run), place]
            run = []
    return found + run[::-1]


def _levels(words: Sequence[str]) -> list[int]:
    """Even ones run to the right, odd ones to the left."""
    base = int(right_to_left(words))
    kinds = _kinds(words)
    levels = []
    for place, kind in enumerate(kinds):
        if kind == NEUTRAL:
            kind = _around(kinds, place, RIGHT if base else LEFT)  # noqa: PLW2901
        if kind == NUMBER:
            levels.append(2 if _strong_before(kinds, place, base) == RIGHT else 0)
        else:
            levels.append(1 if kind == RIGHT else 2 * base)
    return levels


def _kinds(words: Sequence[str]) -> list[str]:
    kinds = [_kind(word) for word in words]
    for place in range(1, len(kinds) - 1):
        # A date's hyphens go with its digits, though nothing else has their direction.
        if words[place] in BETWEEN_DIGITS and kinds[place - 1] == kinds[place + 1] == NUMBER:
            kinds[place] = NUMBER
    return kinds


def _kind(word: str) -> str:
    """By its first letter, else by its first digit."""
    kinds = [KINDS.get(unicodedata.bidirectional(c), NEUTRAL) for c in word]
    letters = [kind for kind in kinds if kind in (LEFT, RIGHT)]
    return (letters or (NUMBER if NUMBER in kinds else NEUTRAL,))[0]


def _around(kinds: Sequence[str], place: int, otherwise: str) -> str:
    """The direction of both neighbours if it is the same one; numbers count as Hebrew does."""
    before = next((kind for kind in reversed(kinds[:place]) if kind != NEUTRAL), otherwise)
    after = next((kind for kind in kinds[place + 1 :] if kind != NEUTRAL), otherwise)
    if before == NUMBER:
        before = _strong_before(kinds, place, int(otherwise == RIGHT))
    if after == NUMBER:
        after = RIGHT if before == RIGHT else otherwise
    return before if before == after else otherwise


def _strong_before(kinds: Sequence[str], place: int, base: int) -> str:
    found = (kind for kind in reversed(kinds[:place]) if kind in (LEFT, RIGHT))
    return next(found, RIGHT if base else LEFT)
