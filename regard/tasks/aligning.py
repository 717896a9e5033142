"""Runs that align: a translator, two of them, or an aligner."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.seq2seq.data import SoundPairs
from regard.seq2seq.errors import ConfigError
from regard.tasks.align import WordAligner
from regard.tasks.config.data import Files
from regard.tasks.pairs.aligning import Aligns
from regard.tasks.pairs.examples import open_given
from regard.tasks.pairs.runs import task_of
from regard.tasks.translate import Translator
from regard.tasks.translate.aligning import ByAttention
from regard.tasks.translate.spelling import check_spelling


@dataclass(frozen=True, slots=True)
class Opened:
    """Who aligns, and how links are made of what it says unless somebody says otherwise."""

    who: Aligns
    data: Files
    """How its pairs are written."""

    about: str
    symmetry: str
    threshold: float
    """Above which the product of both directions is a link."""

    def opened(self, paths: Sequence[str]) -> SoundPairs:
        """The pairs of these files; raise if some cannot be aligned."""
        pairs = open_given(self.data, paths)
        if isinstance(self.who, ByAttention):
            check_spelling(self.who.one, pairs)
            if self.who.other is not None:
                check_spelling(self.who.other, pairs, swapped=True)
        return pairs


def open_aligning(run: str, reverse: str | None = None, *, last: bool = False) -> Opened:
    """The run that aligns, with one of the other direction if that is another run."""
    if task_of(run) == "align":
        if reverse is not None:
            raise ConfigError(
                f"--reverse {reverse}: {run} is an aligner, which knows both directions. Leave "
                "the option out."
            )
        aligner = WordAligner.load(run, last=last)
        # A link is one that is more probable than not, both directions together.
        return Opened(aligner, aligner.config.data, aligner.about, "product", 0.5)
    one = Translator.load(run, last=last)
    other = None if reverse is None else Translator.load(reverse, last=last)
    return Opened(ByAttention(one, other), one.config.data, one.about, "grow-diag-final-and", 0.3)
