"""Links as text: Pharaoh's `0-0 1-2` a line, and NAACL's `1 1 3 S` a link."""

import re
from collections.abc import Iterable, Sequence

from regard.seq2seq.alignment.gold import Gold
from regard.seq2seq.alignment.links import Link, Links
from regard.seq2seq.errors import DataError

FORM = re.compile(r"(\d+)([-p?])(\d+)")


def format_pharaoh(links: Links, *, first: int = 0) -> str:
    """One line.

    >>> format_pharaoh(frozenset({(1, 2), (0, 0)}))
    '0-0 1-2'
    """
    return " ".join(f"{source + first}-{target + first}" for source, target in sorted(links))


def read_pharaoh(lines: Iterable[str], where: str, *, first: int = 0, line: int = 1) -> list[Gold]:
    """Lines of links; `1-2` is sure, `1p2` or `1?2` possible.

    Args:
        lines: Their texts.
        where: Their name in an error message.
        first: The number of the first word: 0 or 1.
        line: The number of the first line.
    """
    return [_line(text, f"{where}, line {n}", first) for n, text in enumerate(lines, start=line)]


def read_naacl(lines: Iterable[str], where: str, count: int) -> list[Gold]:
    """Lines of `pair source target [S|P]`, all counted from 1, for so many pairs."""
    sure, possible = ([set[Link]() for _ in range(count)] for _ in range(2))
    for number, text in enumerate(lines, start=1):
        parts = text.split()
        if not parts:
            continue
        place = f"{where}, line {number}"
        if len(parts) < 3 or not all(part.isdecimal() for part in parts[:3]):
            raise DataError(f"{place}: {text!r} is not a link. Write it as 1 1 3 S.")
        pair, source, target = (int(part) for part in parts[:3])
        if not 1 <= pair <= count or source < 1 or target < 1:
            raise DataError(
                f"{place}: {text!r} is out of range; there are {count} pairs, counted from 1."
            )
        kind = parts[3] if len(parts) > 3 and parts[3] in ("S", "P") else "S"
        (sure if kind == "S" else possible)[pair - 1].add((source - 1, target - 1))
    return [Gold(frozenset(s), frozenset(p)) for s, p in zip(sure, possible, strict=True)]


def check_range(
    gold: Sequence[Gold], sizes: Sequence[tuple[int, int]], where: str, *, line: int = 1
) -> None:
    """Raise if a link is out of range; `line` is the number of the first pair's line."""
    if len(gold) != len(sizes):
        raise DataError(
            f"{where} has links of {len(gold)} pairs, but there are {len(sizes)} pairs. "
            "Give a line for each."
        )
    for number, (each, (source, target)) in enumerate(zip(gold, sizes, strict=True), start=line):
        for link in sorted(each.possible):
            if link[0] >= source or link[1] >= target:
                raise DataError(
                    f"{where}, line {number}: the link {link[0]}-{link[1]} (counted from 0) is "
                    f"out of range; the pair has {source} and {target} words. Are links counted "
                    "from 1, or the words split in another way?"
                )


def _line(text: str, place: str, first: int) -> Gold:
    sure, possible = set[Link](), set[Link]()
    for part in text.split():
        form = FORM.fullmatch(part)
        if form is None:
            raise DataError(f"{place}: {part!r} is not a link. Write links as 0-0 1-2.")
        link = int(form[1]) - first, int(form[3]) - first
        if min(link) < 0:
            raise DataError(f"{place}: {part!r} counts from 0, but the first word is {first}.")
        (sure if form[2] == "-" else possible).add(link)
    return Gold(frozenset(sure), frozenset(possible))
