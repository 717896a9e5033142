"""The visual order of words on a line, where Hebrew or Arabic runs from right to left."""

import unicodedata
from collections.abc import Sequence

LEFT, RIGHT, NUMBER, NEUTRAL = "left", "right", "number", "neutral"
KINDS = {"L": LEFT, "R": RIGHT, "AL": RIGHT, "EN": NUMBER, "AN": NUMBER}
BETWEEN_DIGITS = set("./:-,٫٬")


def right_to_left(words: Sequence[str]) -> bool:
    """Does a text run from right to left? Its first letter decides.

    >>> right_to_left(["3", "مايو", "abc"]), right_to_left(["abc", "مايو"])
    (True, False)
    """
    kinds = (KINDS.get(unicodedata.bidirectional(c)) for word in words for c in word)
    return next((kind for kind in kinds if kind in (LEFT, RIGHT)), LEFT) == RIGHT


def visual_order(words: Sequence[str]) -> list[int]:
    """The indices of the words, from left to right as displayed.

    Unicode's bidirectional algorithm for whole words: letters have the direction of their script,
    numbers run from left to right, and what is neutral takes the direction of its neighbours, or
    else of the text. Between words there are spaces; between single characters there are none.

    >>> visual_order(["אבא", "קרא", "New", "York", "Times"])
    [2, 3, 4, 1, 0]
    """
    spaced = any(len(word) > 1 for word in words)
    line = [part for word in words for part in (word, " ")] if spaced else list(words)
    levels = _levels(line)
    order = list(range(len(line)))
    for level in range(max(levels, default=0), 0, -1):
        order = _reordered(order, levels, level)
    return [index // 2 for index in order if index % 2 == 0] if spaced else order


def _reordered(order: list[int], levels: Sequence[int], level: int) -> list[int]:
    """With each run of at least this level reversed (rule L2)."""
    reordered: list[int] = []
    run: list[int] = []
    for index in order:
        if levels[index] >= level:
            run.append(index)
        else:
            reordered += [*reversed(run), index]
            run = []
    return reordered + run[::-1]


def _levels(line: Sequence[str]) -> list[int]:
    """Embedding levels: even ones run to the right, odd ones to the left."""
    base = RIGHT if right_to_left(line) else LEFT
    kinds = _numbers_after_letters(_kinds(line), base)
    resolved = [
        _neutral_direction(kinds, index, base) if kind == NEUTRAL else kind
        for index, kind in enumerate(kinds)
    ]
    level = {LEFT: 2, RIGHT: 1, NUMBER: 2} if base == RIGHT else {LEFT: 0, RIGHT: 1, NUMBER: 2}
    return [level[kind] for kind in resolved]


def _kinds(line: Sequence[str]) -> list[str]:
    kinds = [_kind(word) for word in line]
    for index in range(1, len(kinds) - 1):
        # Separators between numbers belong to them: the hyphens of a date (rule W4).
        if line[index] in BETWEEN_DIGITS and kinds[index - 1] == kinds[index + 1] == NUMBER:
            kinds[index] = NUMBER
    return kinds


def _kind(word: str) -> str:
    """By its first letter, else by its first digit."""
    kinds = [KINDS.get(unicodedata.bidirectional(c), NEUTRAL) for c in word]
    letters = [kind for kind in kinds if kind in (LEFT, RIGHT)]
    return (letters or (NUMBER if NUMBER in kinds else NEUTRAL,))[0]


def _numbers_after_letters(kinds: Sequence[str], base: str) -> list[str]:
    """Numbers after left-to-right letters take their direction (rule W7)."""
    resolved, strong = [], base
    for kind in kinds:
        strong = kind if kind in (LEFT, RIGHT) else strong
        resolved.append(LEFT if kind == NUMBER and strong == LEFT else kind)
    return resolved


def _neutral_direction(kinds: Sequence[str], index: int, base: str) -> str:
    """That of both neighbours if they agree, else the text's; numbers count as right-to-left."""
    before = next((kind for kind in reversed(kinds[:index]) if kind != NEUTRAL), base)
    after = next((kind for kind in kinds[index + 1 :] if kind != NEUTRAL), base)
    sides = {RIGHT if kind == NUMBER else kind for kind in (before, after)}
    return sides.pop() if len(sides) == 1 else base
