"""What verbs that ask a run about given pairs begin with."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

from regard.cli.configured import found

if TYPE_CHECKING:
    from regard.seq2seq.data import SoundPairs
    from regard.tasks.translate import Translator


def opened(
    runs: Sequence[str], files: Sequence[str], *, last: bool, int8: bool = False
) -> "tuple[Translator, SoundPairs]":
    """The translator of these runs and the pairs of these files; which weights they are is told."""
    found("the pairs", files)
    from regard.tasks.pairs.examples import open_given  # noqa: PLC0415
    from regard.tasks.translate import together  # noqa: PLC0415  # torch: help need not wait

    translator = together(runs, last=last, int8=int8)
    pairs = open_given(translator.config.data, files)
    typer.echo(f"{runs[0]}: {translator.about}", err=True)
    return translator, pairs
