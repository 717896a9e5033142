"""Gold links as JSON lines with their words, which are checked against the pairs' words."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from regard.seq2seq.alignment.gold import Gold
from regard.seq2seq.alignment.links import Link, Links
from regard.seq2seq.errors import DataError

PairWords = tuple[Sequence[str], Sequence[str]]
"""The words of a source and of its target."""


def read_json_links(lines: Iterable[str], where: str, pairs: Sequence[PairWords]) -> list[Gold]:
    """A line for each pair, as `regard align --json` writes it.

    `links` are sure; `possible` may name others. Where `source` and `target` are named, they must
    be the pair's own words.

    >>> read_json_links(['{"links": [[0, 1]], "source": ["a"]}'], "", [(["a"], ["b"] * 2)])[0].sure
    frozenset({(0, 1)})
    """
    found = list(lines)
    if len(found) != len(pairs):
        raise DataError(
            f"{where} has links of {len(found)} pairs, but there are {len(pairs)} pairs. "
            "Give a line for each."
        )
    return [
        _gold(text, f"{where}, line {number}", own)
        for number, (text, own) in enumerate(zip(found, pairs, strict=True), start=1)
    ]


def _gold(text: str, place: str, own: PairWords) -> Gold:
    try:
        record = json.loads(text)
    except ValueError as error:
        raise DataError(f"{place} is not JSON ({error}).") from error
    if not isinstance(record, dict) or "links" not in record:
        raise DataError(f'{place} has no links. Write {{"links": [[0, 0], [1, 2]]}}.')
    for side, words in zip(("source", "target"), own, strict=True):
        if side in record:
            _check_words(f"{place}: the gold's {side}", record[side], words)
    return Gold(_links(record["links"], place), _links(record.get("possible", []), place))


def _check_words(what: str, given: Any, words: Sequence[str]) -> None:
    if not isinstance(given, list) or len(given) != len(words):
        count = len(given) if isinstance(given, list) else "no"
        raise DataError(
            f"{what} has {count} words, but the pair's has {len(words)}. Split both alike."
        )
    for number, (theirs, ours) in enumerate(zip(given, words, strict=True)):
        if theirs != ours:
            raise DataError(
                f"{what} has the word {theirs!r} at {number} (counted from 0), but the pair has "
                f"{ours!r}. Give the pairs that the gold was made for, split alike."
            )


def _links(given: Any, place: str) -> Links:
    links = set[Link]()
    for each in given if isinstance(given, list) else [given]:
        if not (isinstance(each, list) and len(each) == 2 and all(type(n) is int for n in each)):
            raise DataError(f"{place}: {each!r} is not a link. Write links as [0, 2].")
        links.add((each[0], each[1]))
    if links and min(min(link) for link in links) < 0:
        raise DataError(f"{place}: a link is below 0. Both sides are counted from 0.")
    return frozenset(links)
