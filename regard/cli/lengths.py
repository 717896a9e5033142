"""Options for maximum lengths, and notes of the lines that were truncated or skipped."""

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.output import note
from regard.cli.ranges import integer_range
from regard.seq2seq.errors import ConfigError
from regard.tasks.config.decoding import MAX_TOKENS

if TYPE_CHECKING:
    from regard.cli.open_run import OpenRun

MaxSourceLength = Annotated[
    int | None,
    typer.Option(
        "--max-source-length",
        metavar="TOKENS",
        callback=integer_range("--max-source-length", 1, MAX_TOKENS),
        help="Maximum tokens of a source; by default from the training data.",
    ),
]
MaxTargetLength = Annotated[
    int | None,
    typer.Option(
        "--max-length",
        metavar="TOKENS",
        callback=integer_range("--max-length", 1, MAX_TOKENS),
        help="Maximum tokens of a hypothesis or a given target; by default from the training data.",
    ),
]
WhatIfTooLong = Annotated[
    str | None,
    typer.Option(
        "--too-long",
        metavar="truncate|skip|error",
        help="What to do with a longer line: use its first tokens (the default), skip it, or stop.",
    ),
]
CHOICES = ("truncate", "skip", "error")
SHOWN = 10
"""Maximum number of lines that are named; the others are counted."""


def check_choice(too_long: str | None) -> None:
    """Raise before anything is loaded."""
    if too_long is not None and too_long not in CHOICES:
        raise ConfigError(f"--too-long {too_long}: choose {', '.join(CHOICES)}.")


class LengthOptions:
    """Maximum lengths from the command line; each truncated or skipped line is noted."""

    def __init__(self, source: int | None, target: int | None, too_long: str | None) -> None:
        check_choice(too_long)
        self._source, self._target, self._too_long = source, target, too_long
        self._noted: set[str] = set()

    def apply(self, *runs: "OpenRun") -> None:
        """Set the maximum lengths of these runs; raises if one does not have the option."""
        from regard.tasks.abilities import BoundsLength  # noqa: PLC0415  # torch

        for run in runs:
            if not isinstance(run.predictor, BoundsLength) and self._given is None:
                continue
            bounded = run.require(BoundsLength, self._given or "")
            current = bounded.max_length
            bounded.note = self._note
            bounded.max_length = replace(
                current,
                source=self._source or current.source,
                target=self._target or current.target,
                too_long=self._too_long or current.too_long,
            )

    @property
    def _given(self) -> str | None:
        """The first of the options that was given."""
        options = {
            "--max-source-length": self._source,
            "--max-length": self._target,
            "--too-long": self._too_long,
        }
        return next((name for name, value in options.items() if value is not None), None)

    def _note(self, line: str) -> None:
        """To standard error, once each."""
        if line in self._noted:
            return
        self._noted.add(line)
        if len(self._noted) <= SHOWN:
            note(f"note: {line}")

    def note_rest(self) -> None:
        """Note how many lines were not named."""
        more = len(self._noted) - SHOWN
        if more > 0:
            note(f"note: {more} more lines were too long.")
