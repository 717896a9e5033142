"""Runs that align: a translator, two of them, or an aligner."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.seq2seq.data import ValidatedPairs
from regard.seq2seq.errors import ConfigError
from regard.tasks.align import WordAligner
from regard.tasks.config.data import FilesConfig
from regard.tasks.pairs.examples import open_given
from regard.tasks.pairs.runs import task_of
from regard.tasks.translate import Translator
from regard.tasks.translate.aligning import ByAttention
from regard.tasks.translate.oov_check import check_oov


@dataclass(frozen=True, slots=True)
class Opened:
    """Who aligns, and how links are made of what it says unless somebody says otherwise."""

    who: ByAttention | WordAligner
    data: FilesConfig
    """How its pairs are written."""

    about: str
    symmetry: str
    threshold: float
    """Above which the product of both directions is a link."""

    @property
    def models(self) -> list[Translator | WordAligner]:
        """Those that are asked."""
        if isinstance(self.who, WordAligner):
            return [self.who]
        return [each for each in (self.who.one, self.who.other) if each is not None]

    def opened(self, paths: Sequence[str]) -> ValidatedPairs:
        """The pairs of these files; raise if some cannot be aligned."""
        pairs = open_given(self.data, paths)
        if isinstance(self.who, ByAttention):
            check_oov(self.who.one, pairs)
            if self.who.other is not None:
                check_oov(self.who.other, pairs, swapped=True)
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
