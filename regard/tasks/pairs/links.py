"""Given alignments for guided training, a line for each pair."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import final

from regard.seq2seq.alignment import Gold, check_range, read_pharaoh, unit_spans
from regard.seq2seq.batch import Corpus, Fault
from regard.seq2seq.data import Lines, Pair, SpanLink
from regard.seq2seq.errors import DataError


@final
class LinkedPairs:
    """A `Corpus` of pairs that carry their links, read lazily.

    Args:
        corpus: The pairs.
        lines: A line of links for each of them.
        units: The units of the links: "word" or "char".
    """

    def __init__(self, corpus: Corpus[Pair], lines: Lines, units: str) -> None:
        self._corpus, self._lines, self._units = corpus, lines, units

    @property
    def paths(self) -> Sequence[str]:
        return [*self._corpus.paths, self._lines.path]

    def __len__(self) -> int:
        return len(self._corpus)

    def __getitem__(self, number: int) -> Pair:
        pair = self._corpus[number]
        return replace(pair, links=tuple(self._links(pair, number)))

    def where(self, number: int) -> str:
        return self._corpus.where(number)

    def fingerprints(self) -> dict[str, str]:
        return {**self._corpus.fingerprints(), "links": self._lines.digest}

    def faults(self, *, duplicates: bool = True) -> Iterator[Fault]:
        """The faults of the pairs; then, for pairs without any, those of their links."""
        bad = set()
        for fault in self._corpus.faults(duplicates=duplicates):
            if fault.severe:
                bad.add(fault.item)
            yield fault
        if len(self._lines) != len(self):
            what = (
                f"has {len(self._lines)} lines of links, but {', '.join(self._corpus.paths)} has "
                f"{len(self)} pairs; each pair needs its line"
            )
            yield Fault("mismatched counts", what, self._lines.path)
            return
        for number in range(len(self)):
            if number not in bad:
                yield from self._link_faults(number)

    def _link_faults(self, number: int) -> Iterator[Fault]:
        path, line = self._lines.path, number + 1
        try:
            self._links(self._corpus[number], number)
        except DataError as error:
            what = str(error).removeprefix(f"{path}, line {line}: ").removesuffix(".")
            yield Fault("bad links", what, path, line, item=number)

    def _links(self, pair: Pair, number: int) -> list[SpanLink]:
        path, line = self._lines.path, number + 1
        (given,) = read_pharaoh([self._lines[number]], path, line=line)
        source, target = (
            unit_spans(self._units, text, []) for text in (pair.source, pair.target or "")
        )
        check_range([given], [(len(source), len(target))], path, line=line)
        return [(source[ours], target[theirs]) for ours, theirs in _guiding(given)]


def _guiding(given: Gold) -> list[tuple[int, int]]:
    """The links used for guidance: a word's sure ones if it has any, else the possible ones."""
    surely = {target for _, target in given.sure}
    return sorted(given.sure | {link for link in given.possible if link[1] not in surely})
