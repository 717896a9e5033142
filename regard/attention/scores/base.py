"""What a score is: queries × keys → how relevant each key is to each query."""

from abc import ABC, abstractmethod

from torch import nn

from regard.attention.core.axes import Keys, Prepared, Queries, StepState
from regard.attention.core.errors import ShapeError
from regard.attention.kernels import Comparison


class Score(nn.Module, ABC):
    """How relevant is each key? A module that turns queries and keys into a `Comparison`."""

    compares: type[Comparison]
    """What it makes of the prepared keys; kernels that keep something of these look at it."""

    looks_at_keys: bool = True
    """Does what a key contains matter? If not, a key that is not finite harms nobody."""

    def prepare(self, keys: Keys) -> Prepared:
        """What is needed of the keys at every step, computed once."""
        return {"keys": keys}

    @abstractmethod
    def compare(self, queries: Queries, prepared: Prepared, trace: StepState) -> Comparison:
        """Queries against prepared keys, with the parameters as they are now."""


def same_size(score: Score, queries: Queries, prepared: Prepared) -> None:
    """Raise unless queries and keys are vectors of one size."""
    query_size, key_size = queries.shape[-1], prepared["keys"].shape[-1]
    if query_size != key_size:
        raise ShapeError(
            f"{type(score).__name__} compares vectors of one size; queries have {query_size}, "
            f"keys have {key_size}. Use scores.Bilinear({query_size}, {key_size}) or "
            f"scores.Additive({query_size}, {key_size}, hidden_size=…)."
        )
