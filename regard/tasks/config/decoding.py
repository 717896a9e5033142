"""How a trained model is asked for its answer."""

from typing import Annotated, Literal

from pydantic import Field

from regard.tasks.config.options import AtLeastZero, Count, Options, Positive

MAX_BEAM = 1000
"""The widest beam: log-probabilities of a whole vocabulary are held for each hypothesis."""

MAX_TOKENS = 1_000_000
"""The greatest length that can be asked for."""

BeamSize = Annotated[int, Field(ge=1, le=MAX_BEAM)]
Length = Annotated[int, Field(ge=1, le=MAX_TOKENS)]


class DecodingConfig(Options):
    """How a trained model is asked for its answer."""

    beam: BeamSize = 5
    """Beam size; 1: greedy search."""

    penalty: Annotated[float, Field(ge=0, le=10)] = 1.0
    """Log-probabilities are divided by length to this power; 0: shorter answers win."""

    patience: AtLeastZero = 1.0
    """A search ends when so many times `beam` answers have ended (Kasai 2022); 0: not before no
    better one can come."""

    longest_factor: Positive = 2.0
    """An answer may have this many times the source's tokens,"""

    longest_extra: Annotated[Count, Field(le=MAX_TOKENS)] = 10
    """and this many more."""

    max_length: Length | None = None
    """But never more tokens than this; not set: 4 times `data.longest`."""

    max_source_length: Length | None = None
    """The most tokens of a source; not set: 4 times `data.longest`."""

    too_long: Literal["truncate", "skip", "error"] = "truncate"
    """What becomes of a line with more: its first tokens are read, it has no answer, or all stop.
    The first two are noted."""
