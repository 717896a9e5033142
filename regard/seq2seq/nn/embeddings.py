"""Token embeddings and sinusoidal positions."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


def build_embedding(vocab_size: int, size: int) -> nn.Embedding:
    """An embedding table whose vectors have a norm near 1, whatever their size."""
    table = nn.Embedding(vocab_size, size)
    nn.init.normal_(table.weight, std=size**-0.5)
    return table


def sinusoids(
    positions: Int[Tensor, " position"], size: int, dtype: torch.dtype
) -> Float[Tensor, "position size"]:
    """Sines and cosines of wavelengths from 2π to 10000 · 2π (Vaswani 2017, section 3.5)."""
    half = (size + 1) // 2
    rates = torch.exp(torch.arange(half, device=positions.device) * (-math.log(10000.0) / half))
    angles = positions[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :size].to(dtype)
