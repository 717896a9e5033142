"""Sentences of labelled words: CoNLL-U, CoNLL columns, or plain lines without labels."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import final

from regard.seq2seq.batch import Fault
from regard.seq2seq.data.fault_text import excerpt, format_fault
from regard.seq2seq.data.lines import Lines, read_lines
from regard.seq2seq.errors import DataError

WORD, UPOS, COLUMNS = 1, 3, 10
"""Of CoNLL-U: the columns of the word and of its part of speech, counted from 0; how many."""


@dataclass(frozen=True, slots=True)
class LabelledWords:
    """A sentence: its words, their labels if they are known, and its first line."""

    words: tuple[str, ...]
    labels: tuple[str, ...] | None
    line: int
    """Counted from 1."""


def open_conll(
    paths: Sequence[str], *, word_column: int | None = None, label_column: int | None = None
) -> "ConllCorpus":
    """Labelled sentences of all these files; blank lines stand between them.

    A file whose name ends in `.conllu` is CoNLL-U and gives its UPOS; of any other, the first
    column is the word and the last one its label, unless columns are given, counted from 1.
    """
    return ConllCorpus([_ConllFile(read_lines(path), word_column, label_column) for path in paths])


@final
class PlainSentences:
    """A `Corpus` of sentences without labels: a line each, words between spaces."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    @property
    def paths(self) -> Sequence[str]:
        return [self._lines.path]

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, number: int) -> LabelledWords:
        if fault := self._lines.fault(number):
            raise DataError(f"{format_fault(fault)}.")
        return LabelledWords(tuple(self._lines[number].split()), None, number + 1)

    def faults(self, *, duplicates: bool = True) -> Iterator[Fault]:
        yield from self._lines.notes()
        for number in range(len(self)):
            if fault := self._lines.fault(number):
                yield replace(fault, item=number)

    def where(self, number: int) -> str:
        return f"{self._lines.path}, line {number + 1}"

    def fingerprints(self) -> dict[str, str]:
        return {"sentences": self._lines.digest}


@final
class ConllCorpus:
    """A `Corpus` of labelled sentences, read lazily. An item is a block of lines."""

    def __init__(self, files: Sequence["_ConllFile"]) -> None:
        self._files = files
        self._items = [(file, block) for file in files for block in file.blocks()]

    @property
    def paths(self) -> Sequence[str]:
        return [file.lines.path for file in self._files]

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, number: int) -> LabelledWords:
        file, block = self._items[number]
        found = file.sentence(block)
        if isinstance(found, Fault):
            raise DataError(f"{format_fault(found)}.")
        return found

    def faults(self, *, duplicates: bool = True) -> Iterator[Fault]:
        for file in self._files:
            yield from file.lines.notes()
            if not any(True for _ in file.blocks()):
                yield Fault("empty file", "has no sentences", file.lines.path)
        seen: dict[bytes, int] = {}
        for number, (file, block) in enumerate(self._items):
            found = file.sentence(block)
            if isinstance(found, Fault):
                yield replace(found, item=number)
                continue
            if not duplicates:
                continue
            key = hashlib.blake2b(repr(found.words).encode(), digest_size=12).digest()
            same = seen.setdefault(key, number)
            if same != number:
                what = f"is the same sentence as {self.where(same)}"
                yield Fault("duplicate", what, file.lines.path, found.line, False, number)

    def where(self, number: int) -> str:
        file, block = self._items[number]
        return f"{file.lines.path}, line {block.start + 1}"

    def fingerprints(self) -> dict[str, str]:
        digests = "\n".join(file.lines.digest for file in self._files)
        return {"sentences": hashlib.sha256(digests.encode()).hexdigest()}


@final
class _ConllFile:
    """One file: where its sentences are, and which columns they have."""

    def __init__(self, lines: Lines, word_column: int | None, label_column: int | None) -> None:
        self.lines = lines
        self.is_conllu = lines.path.lower().removesuffix(".gz").endswith(".conllu")
        defaults = (WORD, UPOS) if self.is_conllu else (0, -1)
        self._word = defaults[0] if word_column is None else word_column - 1
        self._label = defaults[1] if label_column is None else label_column - 1

    def blocks(self) -> Iterator[range]:
        """The lines of each sentence; comments before it are not among them."""
        start: int | None = None
        for number in range(len(self.lines)):
            text = self.lines[number]
            if not text.strip():
                if start is not None:
                    yield range(start, number)
                start = None
            elif start is None and not self._is_comment(text):
                start = number
        if start is not None:
            yield range(start, len(self.lines))

    def sentence(self, block: range) -> LabelledWords | Fault:
        """The words and labels of a block, or its first fault."""
        words, labels = [], []
        for number in block:
            if fault := self.lines.fault(number):
                return fault
            text = self.lines[number]
            if self._is_comment(text):
                continue
            fields = text.split("\t") if "\t" in text else text.split()
            if self.is_conllu and ("-" in fields[0] or "." in fields[0]):
                continue  # a multiword token, or an empty node
            needed = COLUMNS if self.is_conllu else max(2, self._word + 1, self._label + 1)
            if len(fields) < needed:
                what = f"has {len(fields)} columns, not {needed}: {excerpt(text)}"
                return Fault("too few columns", what, self.lines.path, number + 1)
            word, label = fields[self._word].strip(), fields[self._label].strip()
            if not (word and label):
                what = f"has an empty {'label' if word else 'word'}: {excerpt(text)}"
                return Fault("empty field", what, self.lines.path, number + 1)
            words.append(word)
            labels.append(label)
        return LabelledWords(tuple(words), tuple(labels), block.start + 1)

    def _is_comment(self, text: str) -> bool:
        # In plain columns a word may be "#": only CoNLL-U has comments.
        return self.is_conllu and text.startswith("#")
