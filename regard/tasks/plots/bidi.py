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
    from left to right, and what has none goes with its neighbours or else with the text. Between
    words there are spaces; between single characters there are none.

    >>> visual_order(["אבא", "קרא", "New", "York", "Times"])
    [2, 3, 4, 1, 0]
    """
    spaced = any(len(word) > 1 for word in words)
    line = [part for word in words for part in (word, " ")] if spaced else list(words)
    levels = _levels(line)
    order = list(range(len(line)))
    for level in range(max(levels, default=0), 0, -1):
        order = _reordered(order, levels, level)
    return [place // 2 for place in order if place % 2 == 0] if spaced else order


def _reordered(order: list[int], levels: Sequence[int], level: int) -> list[int]:
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


def _levels(line: Sequence[str]) -> list[int]:
    """Even ones run to the right, odd ones to the left."""
    base = RIGHT if right_to_left(line) else LEFT
    kinds = _beside_letters(_kinds(line), base)
    resolved = [
        _around(kinds, place, base) if kind == NEUTRAL else kind for place, kind in enumerate(kinds)
    ]
    level = {LEFT: 2, RIGHT: 1, NUMBER: 2} if base == RIGHT else {LEFT: 0, RIGHT: 1, NUMBER: 2}
    return [level[kind] for kind in resolved]


def _kinds(line: Sequence[str]) -> list[str]:
    kinds = [_kind(word) for word in line]
    for place in range(1, len(kinds) - 1):
        # A date's hyphens go with its digits, though nothing else has their direction.
        if line[place] in BETWEEN_DIGITS and kinds[place - 1] == kinds[place + 1] == NUMBER:
            kinds[place] = NUMBER
    return kinds


def _kind(word: str) -> str:
    """By its first letter, else by its first digit."""
    kinds = [KINDS.get(unicodedata.bidirectional(c), NEUTRAL) for c in word]
    letters = [kind for kind in kinds if kind in (LEFT, RIGHT)]
    return (letters or (NUMBER if NUMBER in kinds else NEUTRAL,))[0]


def _beside_letters(kinds: Sequence[str], base: str) -> list[str]:
    """Numbers that follow Latin letters are as these are."""
    found, strong = [], base
    for kind in kinds:
        strong = kind if kind in (LEFT, RIGHT) else strong
        found.append(LEFT if kind == NUMBER and strong == LEFT else kind)
    return found


def _around(kinds: Sequence[str], place: int, base: str) -> str:
    """The direction of both neighbours if it is the same one; numbers count as Hebrew does."""
    before = next((kind for kind in reversed(kinds[:place]) if kind != NEUTRAL), base)
    after = next((kind for kind in kinds[place + 1 :] if kind != NEUTRAL), base)
    sides = {RIGHT if kind == NUMBER else kind for kind in (before, after)}
    return sides.pop() if len(sides) == 1 else base
