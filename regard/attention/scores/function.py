"""Any callable as a score."""

import inspect
from collections.abc import Callable

import torch
from torch import Tensor, nn

from regard.attention.core.axes import Prepared, Queries, StepState
from regard.attention.core.errors import DeviceError, DtypeError, OptionError, ShapeError, shown
from regard.attention.core.numerics import broadcast_batch
from regard.attention.kernels import Comparison, PrecomputedScores
from regard.attention.scores.base import Score

Function = Callable[[Tensor, Tensor], Tensor]
"""`(queries, keys) → scores`, with scores `(*batch, query, key)`."""


class FromFunction(Score):
    """A score computed by any callable; a module's parameters are registered as its own.

    It is called once for each read, with all queries and keys, and its scores are held; where a
    part is stateful, once for each step, with that step's query.
    """

    compares = PrecomputedScores

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function  # a module becomes a child, with its parameters

    def compare(self, queries: Queries, prepared: Prepared, state: StepState) -> Comparison:
        keys = prepared["keys"]
        try:
            scores = self.function(queries, keys)
        except TypeError as error:
            _check_takes_two(self.function, error)
            raise
        batch = broadcast_batch(queries.shape[:-2], keys.shape[:-2])
        needed = (*batch, queries.shape[-2], keys.shape[-2])
        _check_scores(scores, queries)
        if tuple(scores.shape) != needed:
            raise ShapeError(
                f"the score returned {tuple(scores.shape)} for queries {tuple(queries.shape)} and "
                f"keys {tuple(keys.shape)}. It must return one number for each pair: {needed}."
            )
        return PrecomputedScores(scores)

    def extra_repr(self) -> str:
        name = getattr(self.function, "__name__", "a callable")
        return "" if isinstance(self.function, nn.Module) else name


def as_score(score: Score | Function) -> Score:
    """A score as it is; any other callable wrapped."""
    if isinstance(score, Score):
        return score
    abstract = isinstance(score, nn.Module) and type(score).forward is nn.Module.forward
    if abstract or isinstance(score, type) or not callable(score):
        raise OptionError(
            f"{shown(score)} is not a score. Pass an object, such as scores.Dot(), "
            "or a callable (queries, keys) → scores."
        )
    return FromFunction(score)


def _check_takes_two(function: Function, error: TypeError) -> None:
    """Raise if the error is that the function cannot be called with queries and keys."""
    try:
        inspect.signature(getattr(function, "forward", function)).bind(None, None)
    except (TypeError, ValueError):  # a built-in may have no signature
        raise OptionError(
            f"the score, {shown(function)}, cannot be called with (queries, keys): {error}. "
            "Pass a callable of two tensors: lambda queries, keys: queries @ keys.mT."
        ) from error


def _check_scores(scores: Tensor, queries: Tensor) -> None:
    """Raise unless these are scores in the queries' precision, on their device."""
    if not isinstance(scores, Tensor) or not scores.is_floating_point():
        given = scores.dtype if isinstance(scores, Tensor) else shown(scores)
        raise DtypeError(f"the score returned {given}. It must return a tensor of floats.")
    if (scores.dtype == torch.float64) != (queries.dtype == torch.float64):
        raise DtypeError(
            f"the score returned {scores.dtype} for queries in {queries.dtype}. "
            f"Convert what it returns: scores.to({queries.dtype})."
        )
    if scores.device != queries.device:
        raise DeviceError(
            f"the score returned scores on {scores.device} for queries on {queries.device}. "
            "Compute them where the queries are."
        )
