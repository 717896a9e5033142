"""Tokens as vectors, and where they stand."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


def embedding(vocabulary: int, size: int) -> nn.Embedding:
    """A vector for each token, of a length near 1 whatever its size."""
    table = nn.Embedding(vocabulary, size)
    nn.init.normal_(table.weight, std=size**-0.5)
    return table


def sinusoids(
    places: Int[Tensor, " place"], size: int, dtype: torch.dtype
) -> Float[Tensor, "place size"]:
    """Sines and cosines of a place, at wavelengths from 2π to 10000 · 2π (Vaswani 2017, 3.5)."""
    half = (size + 1) // 2
    rates = torch.exp(torch.arange(half, device=places.device) * (-math.log(10000.0) / half))
    angles = places[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :size].to(dtype)
