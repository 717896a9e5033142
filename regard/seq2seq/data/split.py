"""Train/validation split by a hash of the source, so that duplicates stay on one side."""

import hashlib
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from regard.attention.core.errors import OptionError
from regard.attention.core.options import check_int, check_number
from regard.seq2seq.errors import DataError


class Split(NamedTuple):
    """Sorted numbers of the items of each side."""

    train: list[int]
    valid: list[int]


def split(
    sources: Iterable[str], *, share: float | None = None, count: int | None = None, seed: int = 0
) -> Split:
    """Split items by their sources: `share` of them to validation, or at most `count`.

    By share, the side of an item depends on its source and the seed alone: it stays when the file
    grows. By count, groups of equal sources are not split; more than `count` are taken only if
    the first group alone has more. Neither side is empty.
    """
    if (share is None) == (count is None):
        raise OptionError(f"share is {share} and count is {count}. Give one of the two.")
    hashes = np.fromiter((_hash(source, seed) for source in sources), np.uint64)
    groups, sizes = np.unique(hashes, return_counts=True)
    if len(groups) < 2:
        raise DataError(
            f"{len(hashes)} items with {len(groups)} different sources cannot be split into "
            "training and validation. Give a validation file: --valid."
        )
    if share is not None:
        check_number("share", share, "a share between 0 and 1", lambda given: 0 < given < 1)
        # In integers: 2⁶⁴ · share may not be exact as a float.
        taken = int(np.searchsorted(groups, np.uint64(int(share * 2**32) << 32)))
    elif count is not None:
        taken = int(np.searchsorted(np.cumsum(sizes), check_int("count", count, 1), side="right"))
    taken = min(max(taken, 1), len(groups) - 1)
    valid = hashes < groups[taken]
    return Split(np.flatnonzero(~valid).tolist(), np.flatnonzero(valid).tolist())


def _hash(source: str, seed: int) -> int:
    text = f"{seed}\0{source}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
