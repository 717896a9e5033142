"""A trained run, ready to answer."""

from pathlib import Path

from regard.tasks.translate import Translator


def load(directory: Path | str, *, last: bool = False) -> Translator:
    """The model of a run's folder, with its best weights, averaged if it keeps an average.

        regard.load("runs/dates").predict(["3 May 1979"])[0].text

    Args:
        directory: What was `--out` of `regard train`.
        last: The last weights instead of the best.
    """
    return Translator.load(directory, last=last)
