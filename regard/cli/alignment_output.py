"""What verbs that write links have in common: their options, and a file that is whole or absent."""

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
    str, typer.Option("--units", metavar="word|subword|char", help="What is linked to what.")
]
Alignments = Annotated[
    str | None,
    typer.Option(
        "--alignments",
        metavar="FILE",
        help="Write the links of each answer there: the line's number, a tab, 0-0 1-2.",
    ),
]


@contextmanager
def written(path: str) -> Iterator[TextIO]:
    """A file to write to, which gets its name when all of it is there.

    What cannot be put in another's place, such as a pipe, is written as it is.
    """
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        with open(path, "w", encoding="utf-8") as file:
            yield file
        return
    folder, name = os.path.split(path)
    if folder and not os.path.isdir(folder):
        raise ConfigError(f"{path} cannot be written: there is no folder {folder}. Make it first.")
    part = os.path.join(folder, f".{name}.{os.getpid()}.part")
    try:
        with open(part, "w", encoding="utf-8") as file:
            yield file
        os.replace(part, path)
    finally:
        if os.path.exists(part):
            os.unlink(part)


class Linker:
    """Writes the links of answers as they come, a line for each."""

    WAITING = 256
    """So many answers are read again together."""

    def __init__(self, linking: "LinksAnswers", file: TextIO, units: str) -> None:
        linking.answer_alignments([], [])  # raises before the first answer
        self._linking, self._file, self._units = linking, file, units
        self._waiting: list[tuple[int, Any, Prediction]] = []

    def add(self, number: int, item: Any, answers: "list[Prediction]") -> None:
        """The answers to an item."""
        self._waiting += [(number, item, answer) for answer in answers]
        if len(self._waiting) >= self.WAITING:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        from regard.seq2seq.alignment import Argmax, format_pharaoh  # noqa: PLC0415  # torch

        items = [item for _, item, _ in self._waiting]
        answers = [answer for _, _, answer in self._waiting]
        found = self._linking.answer_alignments(items, answers, units=self._units)
        for (number, *_), each in zip(self._waiting, found, strict=True):
            self._file.write(f"{number}\t{format_pharaoh(Argmax()(each.weights, each.nothing))}\n")
        self._waiting.clear()
