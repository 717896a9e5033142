"""Content-based addressing: the angle alone."""

import math

import torch
from torch import Tensor

from regard.attention.axes import Keys, Prepared, Queries, Trace
from regard.attention.kernels import Comparison, Dot, native
from regard.attention.kernels.numbers import wide
from regard.attention.looking import may_look
from regard.attention.options import positive
from regard.attention.parameters import scalar, snapshot
from regard.attention.scores.base import Score, same_size

SHORTEST = 1e-4
"""Vectors shorter than this are not stretched to length 1: the gradient at 0 stays below 1e4."""


class Cosine(Score):
    """e = β · qᵀk / (‖q‖ ‖k‖) (Graves 2014, eq. 5 and 6).

    The cosine with a zero vector is 0.

    Args:
        sharpness: β, greater than 0.
        learned: Learn β, through its logarithm, from this value on.
    """

    compares = Dot

    def __init__(self, sharpness: float = 1.0, *, learned: bool = False) -> None:
        super().__init__()
        self.sharpness = positive("sharpness", sharpness)
        self.log_sharpness = scalar(math.log(sharpness)) if learned else None

    def prepare(self, keys: Keys) -> Prepared:
        return {"keys": _unit(keys)}

    def compare(self, queries: Queries, prepared: Prepared, trace: Trace) -> Comparison:
        same_size(self, queries, prepared)
        if self.log_sharpness is None:
            return Dot(_unit(queries), prepared["keys"], self.sharpness)
        factor = snapshot(self.log_sharpness, queries).exp()
        return Dot(_unit(queries), prepared["keys"], factor=factor)

    def extra_repr(self) -> str:
        return f"sharpness={self.sharpness}, learned={self.log_sharpness is not None}"


def _unit(vectors: Tensor) -> Tensor:
    if _in_c(vectors):
        return native.unit(vectors, SHORTEST)
    lengths = wide(vectors).norm(dim=-1, keepdim=True).clamp(min=SHORTEST)
    return (wide(vectors) / lengths).to(vectors.dtype)


def _in_c(vectors: Tensor) -> bool:
    """Are they walked over once, in C? It has no gradient."""
    learns = vectors.requires_grad and torch.is_grad_enabled()
    plain = vectors.dtype == torch.float32 and not learns and may_look(vectors)
    return plain and native.library() is not None
