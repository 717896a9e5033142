"""Masks: who may read whom. True = may read; combine with `& | ~`.

`Lengths` hides padding, `Causal` the future, `Window` what is far; `Prefix` opens the first keys
to all, `Blocks` keeps packed documents apart, `Dense` is any boolean tensor.
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
