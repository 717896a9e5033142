"""Shapes that searches and steppers have in common."""

from jaxtyping import Float, Int
from torch import Tensor

LogProbs = Float[Tensor, "sentence beam vocabulary"]
TokenIds = Int[Tensor, "sentence beam"]
