"""Memories of every kind: of a score alone, of heads, and of heads that share their keys."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from regard import Attention, Memory, MultiHead, Reading
from tests.catalogue import SCORES, SIZE, Mechanism

BATCH, QUERIES, KEYS, VALUE_SIZE = 2, 3, 11, 13
EXACT = {"rtol": 1e-10, "atol": 1e-10}
"""Sums of a few float64 numbers in another order."""


@dataclass(frozen=True)
class Kind:
    """Who owns the memory, and the sizes of its queries and keys."""

    name: str
    query_size: int
    key_size: int
    own: Callable[[Callable[[], Attention]], Attention | MultiHead]

    def owner(self, score: Mechanism, select: Mechanism | None = None) -> Attention | MultiHead:
        """In float64, the same at each call, not in training."""
        torch.manual_seed(0)
        made = self.own(lambda: Attention(score.make(), select.make() if select else None))
        return made.double().eval()

    def content(self, *batch: int, keys: int = KEYS, seed: int = 0) -> "Content":
        """Queries, keys and values for it, the same for the same seed."""
        batch = batch or (BATCH,)
        return Content(
            normal(*batch, QUERIES, self.query_size, seed=seed),
            normal(*batch, keys, self.key_size, seed=seed + 1),
            normal(*batch, keys, VALUE_SIZE, seed=seed + 2),
        )

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Content:
    """What is written to a memory, and what it is asked."""

    queries: Tensor
    keys: Tensor
    values: Tensor

    def part(self, index) -> tuple[Tensor, Tensor]:
        """Some pairs, along the axis of the keys."""
        return self.keys[..., index, :], self.values[..., index, :]

    @property
    def pairs(self) -> tuple[Tensor, Tensor]:
        return self.keys, self.values


def normal(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


ALONE = Kind("alone", SIZE, SIZE, lambda make: make())
HEADS = Kind("heads", 17, 19, lambda make: MultiHead(make, 2, 17, 19, SIZE, value_size=VALUE_SIZE))
GROUPED = Kind(
    "grouped", 17, 19, lambda make: MultiHead(make, 6, 17, 19, SIZE, 3, value_size=VALUE_SIZE)
)
KINDS = [ALONE, HEADS, GROUPED]

every_kind = pytest.mark.parametrize("kind", KINDS, ids=str)
every_score = pytest.mark.parametrize("score", SCORES, ids=str)


def assert_read_alike(queries: Tensor, found: Memory, expected: Memory) -> None:
    """Both memories answer these queries alike."""
    assert len(found) == len(expected)
    assert_agrees(found.read(queries), expected.read(queries))


def assert_agrees(found: Reading, expected: Reading) -> None:
    """Both readings read the same, with the same weights."""
    torch.testing.assert_close(found.context, expected.context, equal_nan=True, **EXACT)
    torch.testing.assert_close(found.weights, expected.weights, equal_nan=True, **EXACT)
