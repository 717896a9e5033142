"""The base of all scores: queries × keys → how relevant each key is to each query."""

from abc import ABC, abstractmethod

from torch import nn

from regard.attention.core.axes import Keys, Prepared, Queries, StepState
from regard.attention.core.errors import ShapeError
from regard.attention.kernels import Comparison


class Score(nn.Module, ABC):
    """How relevant is each key? A module that turns queries and keys into a `Comparison`."""

    compares: type[Comparison]
    """The comparison it makes; kernels decide by it what they cache of the prepared keys."""

    uses_keys: bool = True
    """Does it depend on the content of the keys? If not, a non-finite key does no harm."""

    def prepare(self, keys: Keys) -> Prepared:
        """What every step needs of the keys, computed once."""
        return {"keys": keys}

    @abstractmethod
    def compare(self, queries: Queries, prepared: Prepared, state: StepState) -> Comparison:
        """Queries against prepared keys, with the parameters as they are now, as plain data."""


def check_same_size(score: Score, queries: Queries, prepared: Prepared) -> None:
    """Raise unless queries and keys are vectors of one size."""
    query_size, key_size = queries.shape[-1], prepared["keys"].shape[-1]
    if query_size != key_size:
        raise ShapeError(
            f"{type(score).__name__} compares vectors of one size; queries have {query_size}, "
            f"keys have {key_size}. Use scores.Bilinear({query_size}, {key_size}) or "
            f"scores.Additive({query_size}, {key_size}, hidden_size=…)."
        )
