"""Any callable as a score."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from regard.attention.axes import Prepared, Queries, Trace
from regard.attention.errors import ShapeError
from regard.attention.kernels import Comparison, Given
from regard.attention.scores.base import Score

Function = Callable[[Tensor, Tensor], Tensor]
"""`(queries, keys) → scores`, with scores `(*batch, query, key)`."""


class FromFunction(Score):
    """A score made by any callable; a module's parameters are found as its own.

    It is called once a read, with all queries and keys, and what it said is held.
    """

    compares = Given

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function  # a module becomes a child, and its parameters are found

    def compare(self, queries: Queries, prepared: Prepared, trace: Trace) -> Comparison:
        keys = prepared["keys"]
        scores = self.function(queries, keys)
        batch = torch.broadcast_shapes(queries.shape[:-2], keys.shape[:-2])
        needed = (*batch, queries.shape[-2], keys.shape[-2])
        if tuple(scores.shape) != needed:
            raise ShapeError(
                f"the score made {tuple(scores.shape)} of queries {tuple(queries.shape)} and keys "
                f"{tuple(keys.shape)}. It must return one number for each pair: {needed}."
            )
        return Given(scores)

    def extra_repr(self) -> str:
        named = getattr(self.function, "__name__", "a callable")
        return "" if isinstance(self.function, nn.Module) else named


def as_score(score: Score | Function) -> Score:
    """A score as it is; any other callable wrapped."""
    if isinstance(score, Score):
        return score
    if isinstance(score, type) or not callable(score):
        raise ShapeError(
            f"{score!r} is not a score. Pass an object, such as scores.Dot(), "
            "or a callable (queries, keys) → scores."
        )
    return FromFunction(score)
