"""Masks: which query may read which key. True = may read; combine with `& | ~`.

`Lengths` masks padding, `Causal` the future, `Window` all but near keys; `Prefix` shows the first
keys to every query, `Blocks` separates packed documents, `Dense` is any boolean tensor.
"""

from regard.attention.masks.base import Mask
from regard.attention.masks.blocks import Blocks
from regard.attention.masks.dense import Dense, as_mask
from regard.attention.masks.lengths import Lengths
from regard.attention.masks.pair_index import PairIndex
from regard.attention.masks.positional import Causal, Prefix, Window

__all__ = [
    "Blocks",
    "Causal",
    "Dense",
    "Lengths",
    "Mask",
    "PairIndex",
    "Prefix",
    "Window",
    "as_mask",
]
