"""How long a text may be that a trained model is asked about, unless told otherwise."""

import warnings

from regard.seq2seq.data import LengthWarning, MaxLength
from regard.tasks.config.align import AlignConfig
from regard.tasks.config.translate import TranslateConfig

FACTOR = 4
"""How many times the longest text of its training: far beyond, no answer is worth its time."""


def max_length_of(config: TranslateConfig | AlignConfig) -> MaxLength:
    """As the configuration says, else by what the model was trained on."""
    usual = FACTOR * config.data.longest
    if isinstance(config, AlignConfig):
        return MaxLength(usual, usual)
    given = config.decoding
    return MaxLength(given.max_source_length or usual, given.max_length or usual, given.too_long)


def warn(line: str) -> None:
    """What a program hears of a text that was truncated or skipped, unless it listens itself."""
    warnings.warn(line, LengthWarning, stacklevel=2)
