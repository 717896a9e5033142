"""How long a line may be: options of every verb that asks a model, and what is noted of it."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.output import note
from regard.cli.ranges import whole_from
from regard.seq2seq.errors import ConfigError
from regard.tasks.config.decoding import MAX_TOKENS

if TYPE_CHECKING:
    from regard.tasks.align import WordAligner
    from regard.tasks.translate import Translator

MaxSourceLength = Annotated[
    int | None,
    typer.Option(
        "--max-source-length",
        metavar="TOKENS",
        callback=whole_from("--max-source-length", 1, MAX_TOKENS),
        help="The most tokens of a source; else by what the run was trained on.",
    ),
]
MaxTargetLength = Annotated[
    int | None,
    typer.Option(
        "--max-length",
        metavar="TOKENS",
        callback=whole_from("--max-length", 1, MAX_TOKENS),
        help="The most tokens of an answer or of a given target; else as above.",
    ),
]
WhatIfTooLong = Annotated[
    str | None,
    typer.Option(
        "--too-long",
        metavar="truncate|skip|error",
        help="What becomes of a longer line: its first tokens are read (the default), it has no "
        "answer, or all stop.",
    ),
]
CHOICES = ("truncate", "skip", "error")
SHOWN = 10
"""How many lines are named; the others are counted."""


def check_choice(too_long: str | None) -> None:
    """Raise before anything is loaded."""
    if too_long is not None and too_long not in CHOICES:
        raise ConfigError(f"--too-long {too_long}: choose {', '.join(CHOICES)}.")


class LengthOptions:
    """What the command line says of lengths; it notes each line that was truncated or skipped."""

    def __init__(self, source: int | None, target: int | None, too_long: str | None) -> None:
        check_choice(too_long)
        self._source, self._target, self._too_long = source, target, too_long
        self._noted: set[str] = set()

    def given(self, *who: "Translator | WordAligner | None") -> None:
        """Let these models be asked so."""
        for each in who:
            if each is None:
                continue
            known = each.max_length
            each.note = self._note
            each.max_length = replace(
                known,
                source=self._source or known.source,
                target=self._target or known.target,
                too_long=self._too_long or known.too_long,
            )

    def _note(self, line: str) -> None:
        """On the standard error, once each."""
        if line in self._noted:
            return
        self._noted.add(line)
        if len(self._noted) <= SHOWN:
            note(f"note: {line}")

    def sum_up(self) -> None:
        """How many more there were than were named."""
        more = len(self._noted) - SHOWN
        if more > 0:
            note(f"note: {more} more were too long, too.")
