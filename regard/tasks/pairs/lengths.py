"""How long a text may be that a trained model is asked about, unless told otherwise."""

import warnings

from regard.seq2seq.data import LengthWarning, MaxLength
from regard.tasks.config.decoding import DecodingConfig

FACTOR = 4
"""How many times the longest training text: far beyond, no answer is worth its time."""


def default_max_length(longest: int, decoding: DecodingConfig | None = None) -> MaxLength:
    """By the longest training text, unless the configuration says otherwise."""
    usual = FACTOR * longest
    if decoding is None:
        return MaxLength(usual, usual)
    source, target = decoding.max_source_length or usual, decoding.max_length or usual
    return MaxLength(source, target, decoding.too_long)


def warn_length(line: str) -> None:
    """What a program is told of a truncated or skipped text, unless it sets `note`."""
    warnings.warn(line, LengthWarning, stacklevel=2)
