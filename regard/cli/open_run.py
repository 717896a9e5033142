"""What verbs that ask a run about given pairs begin with."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.cli.config_options import found
from regard.cli.output import note

if TYPE_CHECKING:
    from regard.seq2seq.data import ValidatedPairs
    from regard.tasks.translate import Translator


def open_run(
    runs: Sequence[str], files: Sequence[str], *, last: bool, int8: bool = False
) -> "tuple[Translator, ValidatedPairs]":
    """The translator of these runs and the pairs of these files; which weights they are is told."""
    found("the pairs", files)
    from regard.tasks.pairs.examples import open_given  # noqa: PLC0415
    from regard.tasks.translate import load_ensemble  # noqa: PLC0415  # torch: help need not wait

    translator = load_ensemble(runs, last=last, int8=int8)
    pairs = open_given(translator.config.data, files)
    note(f"{runs[0]}: {translator.about}")
    return translator, pairs
