"""Packed documents: several in one row, none of which may read another."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from regard.attention.core.axes import Allowed
from regard.attention.core.errors import MaskError
from regard.attention.core.records import record
from regard.attention.masks.base import Mask, RemappedMask, as_integers, check_batch, check_device
from regard.attention.masks.pair_index import PairIndex


@record
class Blocks(Mask):
    """A query reads keys of its own block only.

    >>> Blocks.packed([1, 2]).dense(3, 3).int()
    tensor([[1, 0, 0],
            [0, 1, 1],
            [0, 1, 1]], dtype=torch.int32)

    Args:
        keys: The block of each key, `(*batch, key)`, any integers.
        queries: The block of each query, `(*batch, query)`. Without it the queries have the last
            positions of the keys, as in self-attention, at once or step by step.
    """

    key_blocks: Int[Tensor, "*batch 1 key"]
    query_blocks: Int[Tensor, "*batch query 1"] | None

    def __init__(
        self, keys: Tensor | Sequence[int], queries: Tensor | Sequence[int] | None = None
    ) -> None:
        self.key_blocks = _blocks("keys", keys)[..., None, :]
        self.query_blocks = None if queries is None else _blocks("queries", queries)[..., :, None]

    @classmethod
    def packed(cls, lengths: Sequence[int]) -> "Blocks":
        """One row of consecutive documents of these lengths."""
        counts = as_integers("the documents' lengths", lengths)
        if counts.ndim != 1 or (counts.numel() and int(counts.min()) < 0):
            raise MaskError(
                f"the documents' lengths are {counts.tolist()}. Give the lengths of one row of "
                "documents, each 0 or more: masks.Blocks.packed([3, 5])."
            )
        return cls(torch.repeat_interleave(torch.arange(len(counts)), counts))

    def allows(self, pairs: PairIndex) -> Allowed:
        keys = self.key_blocks
        if self.query_blocks is None:
            _check_positions(pairs.queries, pairs.keys)
            queries = keys.mT[..., pairs.query_positions().flatten(), :]
        elif pairs.rows is None:
            queries = self.query_blocks
        else:
            queries = self.query_blocks[..., pairs.rows, :]
        return queries == pairs.take_columns(keys)

    def remap_keys(self, source: Int[Tensor, " column"], keys: int, fresh: bool = True) -> Mask:
        if self.query_blocks is None:
            raise MaskError(
                "this memory's Blocks take the queries' blocks from the keys' positions, which a "
                "write or an erasure moves. Give both: masks.Blocks(keys, queries)."
            )
        return RemappedMask(self, source[None, :], keys, fresh)

    def check(self, shape: tuple[int, ...], device: torch.device) -> None:
        queries, keys = shape[-2:]
        for name, blocks in (("keys", self.key_blocks), ("queries", self.query_blocks)):
            if blocks is not None:
                check_device(self, blocks, device)
                hint = f"Give the blocks of the {name} these axes too, or 1 to broadcast."
                check_batch(self, blocks, shape, hint)
        if (own := self.key_blocks.shape[-1]) != keys:
            raise MaskError(f"Blocks has {own} keys but there are {keys}. Give one block for each.")
        if self.query_blocks is None:
            _check_positions(queries, keys)
        elif (own := self.query_blocks.shape[-2]) != queries:
            raise MaskError(
                f"Blocks has {own} queries but there are {queries}. Give one block for each."
            )


def _check_positions(queries: int, keys: int) -> None:
    if queries > keys:
        raise MaskError(
            f"{queries} queries cannot be at the last of {keys} keys. "
            "Give the queries' blocks too: masks.Blocks(keys, queries)."
        )


def _blocks(name: str, blocks: Tensor | Sequence[Any]) -> Tensor:
    tensor = as_integers(f"the {name}' blocks", blocks)
    if tensor.ndim == 0:
        raise MaskError(
            f"the {name}' blocks are one number, {tensor.item()}. "
            "Give a whole number for each position: masks.Blocks([0, 0, 1])."
        )
    return tensor
