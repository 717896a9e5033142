"""Runs of every task: trained by their configuration, loaded by what they were trained for."""

from pathlib import Path

from regard.seq2seq.training import Outcome, Reporter
from regard.tasks import align, translate
from regard.tasks.align import WordAligner
from regard.tasks.config import Options
from regard.tasks.config.align import AlignConfig
from regard.tasks.config.translate import TranslateConfig
from regard.tasks.pairs.card import USAGE
from regard.tasks.pairs.runs import task_of
from regard.tasks.translate import Translator

__all__ = ["USAGE", "load", "train"]


def train(directory: Path | str, config: Options, reporter: Reporter | None = None) -> Outcome:
    """Train in a folder what a configuration asks for, or go on there."""
    match config:
        case TranslateConfig():
            return translate.train(directory, config, reporter)
        case AlignConfig():
            return align.train(directory, config, reporter)
    raise AssertionError(f"nothing is trained by {type(config).__name__}")


def load(directory: Path | str, *, last: bool = False) -> Translator | WordAligner:
    """The model of a run's folder, with its best weights, averaged if it keeps an average.

        regard.load("runs/dates").predict(["3 May 1979"])[0].text

    Args:
        directory: What was `--out` of `regard train`.
        last: The last weights instead of the best.
    """
    if task_of(directory) == "align":
        return WordAligner.load(directory, last=last)
    return Translator.load(directory, last=last)
