"""Options of verbs that write alignments, and the file that they write atomically."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from regard.seq2seq.errors import ConfigError

if TYPE_CHECKING:
    from regard.seq2seq.protocols import Prediction
    from regard.tasks.abilities import LinksAnswers

Units = Annotated[
    str, typer.Option("--units", metavar="word|subword|char", help="Units that are linked.")
]
Alignments = Annotated[
    str | None,
    typer.Option(
        "--alignments",
        metavar="FILE",
        help="Write the alignment of each answer to a file: line number, a tab, 0-0 1-2.",
    ),
]


@contextmanager
def atomic_output(path: str) -> Iterator[TextIO]:
    """A file to write to, renamed to its path on success; a pipe or a device is written to."""
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        with open(path, "w", encoding="utf-8") as file:
            yield file
        return
    folder, name = os.path.split(path)
    if folder and not os.path.isdir(folder):
        raise ConfigError(
            f"{path} cannot be written: there is no folder {folder}. Create it first."
        )
    part = os.path.join(folder, f".{name}.{os.getpid()}.part")
    try:
        with open(part, "w", encoding="utf-8") as file:
            yield file
        os.replace(part, path)
    finally:
        if os.path.exists(part):
            os.unlink(part)


class AlignmentWriter:
    """Writes the alignments of answers, a line for each, in batches."""

    BATCH = 256
    """Number of answers that are aligned in one batch."""

    def __init__(self, predictor: "LinksAnswers", file: TextIO, units: str) -> None:
        predictor.answer_alignments([], [])  # raises before the first answer
        self._predictor, self._file, self._units = predictor, file, units
        self._pending: list[tuple[int, Any, Prediction]] = []

    def add(self, number: int, item: Any, answers: "list[Prediction]") -> None:
        """Add the answers to an item."""
        self._pending += [(number, item, answer) for answer in answers]
        if len(self._pending) >= self.BATCH:
            self.flush()

    def flush(self) -> None:
        """Align and write the pending answers."""
        from regard.seq2seq.alignment import Argmax, format_pharaoh  # noqa: PLC0415  # torch

        items = [item for _, item, _ in self._pending]
        answers = [answer for _, _, answer in self._pending]
        found = self._predictor.answer_alignments(items, answers, units=self._units)
        for (number, *_), each in zip(self._pending, found, strict=True):
            self._file.write(f"{number}\t{format_pharaoh(Argmax()(each.weights, each.nothing))}\n")
        self._pending.clear()
