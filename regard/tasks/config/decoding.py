"""Decoding: beam search and limits of length."""

from typing import Annotated, Literal

from pydantic import Field

from regard.tasks.config.options import AtLeastZero, Count, Options, Positive

MAX_BEAM = 1000
"""Maximum beam size: each hypothesis holds the log-probabilities of the whole vocabulary."""

MAX_TOKENS = 1_000_000
"""Maximum of all length options."""

BeamSize = Annotated[int, Field(ge=1, le=MAX_BEAM)]
Length = Annotated[int, Field(ge=1, le=MAX_TOKENS)]


class DecodingConfig(Options):
    """Decoding: beam search and limits of length."""

    beam: BeamSize = 5
    """Beam size; 1: greedy search."""

    penalty: Annotated[float, Field(ge=0, le=10)] = 1.0
    """Length penalty: log-probabilities are divided by length to this power; 0: none."""

    patience: AtLeastZero = 1.0
    """Stop when this many times `beam` hypotheses have ended (Kasai 2022); 0: when no better one is
    possible."""

    longest_factor: Positive = 2.0
    """Maximum length of an answer: this many times the source's tokens,"""

    longest_extra: Annotated[Count, Field(le=MAX_TOKENS)] = 10
    """plus this many."""

    max_length: Length | None = None
    """Absolute maximum length of an answer, in tokens; not set: 4 times `data.longest`."""

    max_source_length: Length | None = None
    """Maximum length of a source, in tokens; not set: 4 times `data.longest`."""

    too_long: Literal["truncate", "skip", "error"] = "truncate"
    """What to do with a longer line: use its first tokens, skip it, or stop. The first two are
    noted."""
