"""Content-based addressing: the angle alone."""

import math

import torch
from torch import Tensor

from regard.attention.core.axes import Keys, Prepared, Queries, StepState
from regard.attention.core.numerics import upcast
from regard.attention.core.options import check_positive
from regard.attention.core.parameters import scalar, snapshot
from regard.attention.kernels import Comparison, DotComparison
from regard.attention.scores.base import Score, same_size
from regard.native.eligibility import usable
from regard.native.l2_normalize import l2_normalize

SHORTEST = 1e-4
"""Vectors shorter than this are not stretched to length 1: the gradient at 0 stays below 1e4."""


class Cosine(Score):
    """e = β · qᵀk / (‖q‖ ‖k‖) (Graves 2014, eq. 5 and 6).

    The cosine with a zero vector is 0.

    Args:
        sharpness: β, greater than 0.
        learned: Learn β, through its logarithm, from this value on.
    """

    compares = DotComparison

    def __init__(self, sharpness: float = 1.0, *, learned: bool = False) -> None:
        super().__init__()
        self.sharpness = check_positive("sharpness", sharpness)
        self.log_sharpness = scalar(math.log(sharpness)) if learned else None

    def prepare(self, keys: Keys) -> Prepared:
        return {"keys": _unit(keys)}

    def compare(self, queries: Queries, prepared: Prepared, trace: StepState) -> Comparison:
        same_size(self, queries, prepared)
        if self.log_sharpness is None:
            return DotComparison(_unit(queries), prepared["keys"], self.sharpness)
        factor = snapshot(self.log_sharpness, queries).exp()
        return DotComparison(_unit(queries), prepared["keys"], factor=factor)

    def extra_repr(self) -> str:
        return f"sharpness={self.sharpness}, learned={self.log_sharpness is not None}"


def _unit(vectors: Tensor) -> Tensor:
    learns = vectors.requires_grad and torch.is_grad_enabled()
    if not learns and usable(vectors):
        return l2_normalize(vectors, SHORTEST)
    lengths = upcast(vectors).norm(dim=-1, keepdim=True).clamp(min=SHORTEST)
    return (upcast(vectors) / lengths).to(vectors.dtype)
