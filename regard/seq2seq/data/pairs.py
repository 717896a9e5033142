"""A corpus of text pairs in files, with its faults."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import final

from regard.seq2seq.batch import Fault
from regard.seq2seq.data.fault_text import excerpt, format_fault
from regard.seq2seq.data.formats import (
    Format,
    JsonRecords,
    Pair,
    ParallelFiles,
    SourceLines,
    TabSeparated,
)
from regard.seq2seq.data.lines import read_lines
from regard.seq2seq.errors import DataError

LONGEST = 2000
"""Default maximum of characters a side."""

RECORDS = (".jsonl", ".ndjson", ".json")


def open_pairs(
    paths: Sequence[str],
    *,
    fields: tuple[str, str] = ("source", "target"),
    longest: int = LONGEST,
) -> "PairCorpus":
    """Pairs from two parallel files, or from one of JSON records or of two columns.

    Each may be gzip; `-` is standard input. One file is JSON lines if its name ends in `.jsonl`,
    else TSV of two columns.
    """
    if len(paths) not in (1, 2):
        raise DataError(
            f"{len(paths)} files were given. Give one of pairs (TSV or JSONL), "
            "or two: sources and targets."
        )
    if len(paths) == 2 and paths[0] == paths[1] == "-":
        raise DataError("standard input cannot be both files. Give one of them a name.")
    files = [read_lines(path) for path in paths]
    if len(files) == 2:
        return PairCorpus(ParallelFiles(*files), longest)
    if _suffix(paths[0], RECORDS):
        return PairCorpus(JsonRecords(files[0], *fields), longest)
    return PairCorpus(TabSeparated(files[0]), longest)


def open_sources(path: str, *, field: str = "source", longest: int = LONGEST) -> "PairCorpus":
    """Sources alone, one a line: a text's lines, a TSV's first column, a JSONL's field.

    An empty or an over-long line is only a warning here, so that output line n answers line n.
    """
    lines = read_lines(path)
    if _suffix(path, RECORDS):
        return PairCorpus(JsonRecords(lines, field, None), longest)
    return PairCorpus(SourceLines(lines, first_column=_suffix(path, (".tsv",))), longest)


def _suffix(path: str, suffixes: tuple[str, ...]) -> bool:
    return path.lower().removesuffix(".gz").endswith(suffixes)


@final
class PairCorpus:
    """A `Corpus` of pairs, read lazily. Item n is line n + 1 of its files."""

    def __init__(self, rows: Format, longest: int = LONGEST) -> None:
        self._rows = rows
        self.longest = longest

    @property
    def paths(self) -> tuple[str, ...]:
        """The files."""
        return tuple(lines.path for lines in self._rows.files)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, number: int) -> Pair:
        if not 0 <= number < len(self):
            raise IndexError(f"there are {len(self)} pairs, counted from 0; not {number}")
        pair, faults = self._inspect(number)
        for fault in faults:
            if fault.severe or pair is None:
                raise DataError(f"{format_fault(fault)}.")
        assert pair is not None  # without a fault there is a pair
        return pair

    def where(self, number: int) -> str:
        return f"{self.paths[0]}, line {number + 1}"

    def fingerprints(self) -> dict[str, str]:
        """Of the files' bytes, decompressed; their names do not matter."""
        digests = "\n".join(lines.digest for lines in self._rows.files)
        return {"pairs": hashlib.sha256(digests.encode()).hexdigest()}

    def faults(self, *, duplicates: bool = True) -> Iterator[Fault]:
        """Faults of the files as a whole, then line by line.

        Finding duplicates takes memory: a hash of each pair is held.
        """
        yield from self._rows.faults()
        first: dict[bytes, int] = {}
        for number in range(len(self)):
            pair, faults = self._inspect(number)
            yield from (replace(fault, item=number) for fault in faults)
            if not duplicates or pair is None or pair.target is None:
                continue
            same = first.setdefault(_key(pair), pair.line)
            if same != pair.line:
                what = f"is the same pair as line {same}: {excerpt(pair.source)}"
                yield Fault("duplicate", what, self.paths[0], pair.line, False, number)

    def _inspect(self, number: int) -> tuple[Pair | None, list[Fault]]:
        """A pair, if the line gives one, and its faults."""
        faults = [fault for lines in self._rows.files if (fault := lines.fault(number))]
        if faults:
            return None, faults
        row = self._rows.row(number)
        if isinstance(row, Fault):
            return None, [row]
        faults = _side_faults("source", row.source, row, self.paths[0], self.longest)
        if row.target is not None:
            faults += _side_faults("target", row.target, row, self.paths[-1], self.longest)
        return row, faults


def _side_faults(side: str, text: str, pair: Pair, path: str, longest: int) -> list[Fault]:
    found: list[tuple[str, str]] = []
    if not text or text.isspace():
        found.append(("empty side", f"the {side} is empty"))
    if len(text) > longest:
        what = f"the {side} has {len(text)} characters, more than {longest}: {excerpt(text)}"
        found.append(("over-long", what))
    # JSON can escape both, in a file of valid bytes.
    if "\0" in text:
        found.append(("NUL", f"the {side} holds NUL: {excerpt(text, text.index(chr(0)))}"))
    if not _is_encodable(text):
        found.append(("invalid UTF-8", f"the {side} holds a lone surrogate: {excerpt(text)}"))
    harmless = ("empty side", "over-long") if pair.target is None else ()
    return [Fault(kind, what, path, pair.line, kind not in harmless) for kind, what in found]


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _key(pair: Pair) -> bytes:
    text = f"{pair.source}\0{pair.target}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=12).digest()
