"""Given alignments for guided training, line by line beside the pairs that they belong to."""

from collections.abc import Iterable, Iterator
from typing import final

from regard.seq2seq.alignment import Gold, check_range, read_pharaoh, unit_spans
from regard.seq2seq.batch import Fault
from regard.seq2seq.data import Lines, PairCorpus, SpanLink, format_fault, read_lines
from regard.seq2seq.errors import DataError
from regard.tasks.config.data import PairDataConfig


@final
class AlignmentLinks:
    """For each pair of a corpus which characters belong together; read when they are asked for.

    No sequence: a line may be broken, and asking for it says so.

    Args:
        lines: A line of links for each line of the corpus.
        corpus: The pairs.
        units: What the links count: "word" or "char".
    """

    def __init__(self, lines: Lines, corpus: PairCorpus, units: str) -> None:
        self._lines, self._corpus, self._units = lines, corpus, units

    @property
    def digest(self) -> str:
        """SHA-256 of the file."""
        return self._lines.digest

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, number: int) -> list[SpanLink]:
        pair = self._corpus[number]
        (given,) = read_pharaoh([self._lines[number]], self._lines.path, line=number + 1)
        sides = [unit_spans(self._units, text, []) for text in (pair.source, pair.target or "")]
        check_range([given], [(len(sides[0]), len(sides[1]))], self._lines.path, line=number + 1)
        return [(sides[0][source], sides[1][target]) for source, target in _meant(given)]

    def faults(self, numbers: Iterable[int]) -> Iterator[Fault]:
        """What is wrong with the links of these pairs."""
        path = self._lines.path
        if len(self) != len(self._corpus):
            what = (
                f"has {len(self)} lines of links, but {', '.join(self._corpus.paths)} has "
                f"{len(self._corpus)} pairs; each pair needs its line"
            )
            yield Fault("mismatched counts", what, path)
            return
        for number in numbers:
            try:
                self[number]
            except DataError as error:
                what = str(error).removeprefix(f"{path}, line {number + 1}: ").removesuffix(".")
                yield Fault("bad links", what, path, number + 1)

    def check(self, numbers: Iterable[int]) -> None:
        """Raise if something is wrong with the links of these pairs."""
        for fault in self.faults(numbers):
            line = format_fault(fault)
            raise DataError(line if line.endswith("?") else f"{line}.")


def _meant(given: Gold) -> list[tuple[int, int]]:
    """What guides a word: its sure links if it has any, else the possible ones."""
    told = {target for _, target in given.sure}
    return sorted(given.sure | {link for link in given.possible if link[1] not in told})


def open_links(data: PairDataConfig, corpus: PairCorpus) -> AlignmentLinks:
    """The links that a configuration names, for its pairs."""
    return AlignmentLinks(read_lines(data.links[0]), corpus, data.link_units)
