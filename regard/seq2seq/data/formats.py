"""File formats of pairs: TSV, parallel files, JSON lines, sources alone."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import final

from regard.seq2seq.batch import Fault, Span
from regard.seq2seq.data.fault_text import excerpt
from regard.seq2seq.data.lines import Lines
from regard.seq2seq.data.misalignment import find_misaligned_line

SpanLink = tuple[Span, Span]
"""A span of a source linked to a span of its target, in characters."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A source with its target, if there is one, and their line number."""

    source: str
    target: str | None
    line: int
    """Counted from 1."""

    links: tuple[SpanLink, ...] | None = None
    """Gold links, for guided alignment."""

    def swapped(self) -> "Pair":
        """The other direction."""
        return Pair(self.target or "", self.source, self.line)

    def emptied(self) -> "Pair":
        """The same line with two empty sides: a skipped pair, so that line n stays line n."""
        return Pair("", "", self.line)


class Format(ABC):
    """Pairs by number, one a line (or one from two lines of the same number)."""

    def __init__(self, *files: Lines) -> None:
        self.files = files

    def __len__(self) -> int:
        return min(len(lines) for lines in self.files)

    @abstractmethod
    def row(self, number: int) -> Pair | Fault:
        """The pair of a line, or its fault."""

    def faults(self) -> Iterator[Fault]:
        """Faults of the files as a whole."""
        for lines in self.files:
            yield from lines.notes()
            if not len(lines):
                yield Fault("empty file", "has no lines", lines.path)


@final
class TabSeparated(Format):
    """One file of two columns, source and target, separated by a tab (TSV)."""

    def row(self, number: int) -> Pair | Fault:
        (lines,) = self.files
        text = lines[number]
        sides = text.split("\t")
        if len(sides) == 2:
            return Pair(sides[0], sides[1], number + 1)
        tabs = len(sides) - 1
        what = f"has {tabs} tabs where 1 is needed, between source and target: {excerpt(text)}"
        return Fault("wrong columns", what, lines.path, number + 1)


@final
class ParallelFiles(Format):
    """Two files; line n of one belongs to line n of the other."""

    def row(self, number: int) -> Pair:
        sources, targets = self.files
        return Pair(sources[number], targets[number], number + 1)

    def faults(self) -> Iterator[Fault]:
        yield from super().faults()
        sources, targets = self.files
        if len(sources) == len(targets):
            return
        place = find_misaligned_line(sources.sizes(), targets.sizes())
        counts = (
            f"{sources.path} has {len(sources)} lines and {targets.path} has {len(targets)}, "
            "but both need the same number"
        )
        if place == len(self):
            longer = max(self.files, key=len)
            where = f"line {place + 1} of {longer.path}, {excerpt(longer[place])}, has no partner"
        else:
            ours, theirs = excerpt(sources[place]), excerpt(targets[place])
            where = f"they seem to be misaligned from line {place + 1}: {ours} and {theirs}"
        yield Fault("mismatched counts", f"{counts}; {where}", sources.path)


@final
class JsonRecords(Format):
    """One file; each line a JSON object with a field for the source and one for the target."""

    def __init__(self, lines: Lines, source: str, target: str | None) -> None:
        super().__init__(lines)
        self.fields = (source,) if target is None else (source, target)

    def row(self, number: int) -> Pair | Fault:
        (lines,) = self.files
        text = lines[number]

        def fault(kind: str, what: str) -> Fault:
            return Fault(kind, f"{what}: {excerpt(text)}", lines.path, number + 1)

        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            return fault("bad JSON", f"is not JSON ({error})")
        if not isinstance(record, dict):
            return fault("bad JSON", "is JSON, but not an object")
        sides: list[str] = []
        for field in self.fields:
            if field not in record:
                has = ", ".join(map(repr, record)) or "none"
                return fault("missing field", f"has no field {field!r} (it has {has})")
            side = record[field]
            if not isinstance(side, str):
                return fault("missing field", f"field {field!r} is not a string")
            sides.append(side)
        return Pair(sides[0], sides[1] if len(sides) == 2 else None, number + 1)


@final
class SourceLines(Format):
    """One file of sources alone: a line each, or the first column of each."""

    def __init__(self, lines: Lines, *, first_column: bool) -> None:
        super().__init__(lines)
        self._first_column = first_column

    def row(self, number: int) -> Pair:
        text = self.files[0][number]
        return Pair(text.split("\t")[0] if self._first_column else text, None, number + 1)
