"""Cosine similarity, as in content-based addressing."""

import math

import torch
from torch import Tensor

from regard.attention.core.axes import Keys, Prepared, Queries, StepState
from regard.attention.core.numerics import upcast
from regard.attention.core.options import check_positive
from regard.attention.core.parameters import scalar, snapshot
from regard.attention.kernels import Comparison, DotComparison
from regard.attention.scores.base import Score, check_same_size
from regard.native.eligibility import usable
from regard.native.l2_normalize import l2_normalize

MIN_NORM = 1e-4
"""Vectors are divided by their norm or by this, so that the gradient at 0 stays below 1e4."""


class Cosine(Score):
    """e = β · qᵀk / (‖q‖ ‖k‖) (Graves 2014, eq. 5 and 6).

    The cosine with a zero vector is 0.

    Args:
        sharpness: β, greater than 0.
        learned: Learn log β, starting from this value.
    """

    compares = DotComparison

    def __init__(self, sharpness: float = 1.0, *, learned: bool = False) -> None:
        super().__init__()
        self.sharpness = check_positive("sharpness", sharpness)
        self.log_sharpness = scalar(math.log(sharpness)) if learned else None

    def prepare(self, keys: Keys) -> Prepared:
        return {"keys": _normalize(keys)}

    def compare(self, queries: Queries, prepared: Prepared, state: StepState) -> Comparison:
        check_same_size(self, queries, prepared)
        if self.log_sharpness is None:
            return DotComparison(_normalize(queries), prepared["keys"], self.sharpness)
        factor = snapshot(self.log_sharpness, queries).exp()
        return DotComparison(_normalize(queries), prepared["keys"], factor=factor)

    def extra_repr(self) -> str:
        return f"sharpness={self.sharpness}, learned={self.log_sharpness is not None}"


def _normalize(vectors: Tensor) -> Tensor:
    learns = vectors.requires_grad and torch.is_grad_enabled()
    if not learns and usable(vectors):
        return l2_normalize(vectors, MIN_NORM)
    lengths = upcast(vectors).norm(dim=-1, keepdim=True).clamp(min=MIN_NORM)
    return (upcast(vectors) / lengths).to(vectors.dtype)
