"""How a trained model is asked for its answer."""

from regard.tasks.config.options import AtLeastZero, Count, Options, Positive, Size


class Decoding(Options):
    """How a trained model is asked for its answer."""

    beam: Size = 5
    """How many beginnings are followed at once; 1: the best token each time."""

    penalty: AtLeastZero = 1.0
    """Log-probabilities are divided by length to this power; 0: shorter answers win."""

    patience: AtLeastZero = 1.0
    """A search ends when so many times `beam` answers have ended (Kasai 2022); 0: not before no
    better one can come."""

    longest_factor: Positive = 2.0
    """An answer may have this many times the source's tokens,"""

    longest_extra: Count = 10
    """and this many more."""
