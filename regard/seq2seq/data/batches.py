"""Batches of an epoch, bucketed by length: a pure function of seed, epoch and lengths."""

import hashlib
from collections.abc import Sequence

import numpy as np

from regard.attention.core.errors import OptionError
from regard.attention.core.options import check_int


def plan_batches(
    lengths: Sequence[int] | Sequence[tuple[int, ...]] | np.ndarray,
    *,
    seed: int,
    epoch: int,
    tokens: int | None = None,
    sentences: int | None = None,
) -> list[list[int]]:
    """Batches of items of similar length, shuffled anew each epoch.

    A batch is full when items × longest item, padding included, would exceed `tokens`, or the
    items exceed `sentences`. Every item is in one batch; one longer than `tokens` has a batch to
    itself. Given two lengths for each item (source, target), items are sorted by the longer one
    and then by the difference, so that both sides have little padding.

    >>> plan_batches([3, 1, 9, 1, 3], seed=1, epoch=0, tokens=6)
    [[1, 3], [2], [4, 0]]
    """
    if tokens is None and sentences is None:
        raise OptionError("neither tokens nor sentences were given. Give the size of a batch.")
    max_tokens = check_int("tokens", tokens, 1) if tokens is not None else None
    rows = check_int("sentences", sentences, 1) if sentences is not None else len(lengths)
    if not len(lengths):
        return []
    sides = np.asarray(lengths, np.int64).reshape(len(lengths), -1)
    sizes = np.maximum(sides.max(1), 1)
    ties = _hashes(len(sizes), seed, epoch, "items")
    order = np.lexsort((ties, sides[:, -1] - sides[:, 0], sizes))
    ends = _ends(sizes[order], max_tokens, rows)
    batches = [part.tolist() for part in np.split(order, ends[:-1])]
    shuffled = np.argsort(_hashes(len(batches), seed, epoch, "batches"), kind="stable")
    return [batches[number] for number in shuffled.tolist()]


def _ends(sizes: np.ndarray, tokens: int | None, sentences: int) -> list[int]:
    """The end of each batch; sizes are sorted, so the last item of a batch is its longest."""
    ends: list[int] = []
    start = 0
    while start < len(sizes):
        end = min(start + sentences, len(sizes))
        if tokens is not None:
            # An upper bound first: as many rows as fit if all were as short as the first.
            end = min(end, start + max(1, tokens // int(sizes[start])))
            padded = sizes[start:end] * np.arange(1, end - start + 1)
            end = start + max(1, int(np.searchsorted(padded, tokens, side="right")))
        ends.append(end)
        start = end
    return ends


def _hashes(count: int, seed: int, epoch: int, purpose: str) -> np.ndarray:
    """A pseudo-random number for each of 0 … count − 1, the same on every machine."""
    key = hashlib.sha256(f"{seed} {epoch} {purpose}".encode()).digest()[:8]
    mixed = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed += np.uint64(int.from_bytes(key, "big"))
    # The finaliser of SplitMix64 (Steele et al. 2014): every bit depends on every other.
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
