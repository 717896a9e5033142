"""The default maximum length of a trained model's inputs."""

import warnings

from regard.seq2seq.data import LengthWarning, MaxLength
from regard.tasks.config.decoding import DecodingConfig

FACTOR = 4
"""Times the maximum training length: quality is poor far beyond it."""


def default_max_length(longest: int, decoding: DecodingConfig | None = None) -> MaxLength:
    """From the maximum training length, unless configured."""
    usual = FACTOR * longest
    if decoding is None:
        return MaxLength(usual, usual)
    source, target = decoding.max_source_length or usual, decoding.max_length or usual
    return MaxLength(source, target, decoding.too_long)


def warn_length(line: str) -> None:
    """The default `note`: warn of a truncated or skipped text."""
    warnings.warn(line, LengthWarning, stacklevel=2)
