"""Real captions as ids, in batches of like lengths: the same for everyone."""

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

IDS = Path(__file__).parents[2] / ".benchmarks" / "captions.json"
PAD, BEGIN, END, UNKNOWN = 0, 1, 2, 3
SENTENCES = 64

Sides = tuple[Tensor, Tensor, Tensor, Tensor]
"""Source ids and lengths, target ids (`BEGIN` and `END` among them) and lengths; padded."""


@cache
def known() -> dict[str, Any]:
    """What was written, with the number of tokens."""
    return json.loads(IDS.read_text())


def training_batches(count: int) -> list[Sides]:
    """So many batches of 64 pairs of like lengths, drawn from all lengths."""
    pairs = sorted(known()["train"], key=lambda pair: (len(pair[1]), len(pair[0])))
    whole = [pairs[n : n + SENTENCES] for n in range(0, len(pairs), SENTENCES)]
    random.Random(5).shuffle(whole)
    return [_sides(batch) for batch in whole[:count]]


def sentence_batches() -> list[Sides]:
    """All test pairs, the longest sources first."""
    pairs = sorted(known()["test"], key=lambda pair: -len(pair[0]))
    return [_sides(pairs[n : n + SENTENCES]) for n in range(0, len(pairs), SENTENCES)]


def target_tokens(count: int) -> int:
    """How many tokens are learned from in so many batches; `BEGIN` is none."""
    return sum(int((lengths - 1).sum()) for *_, lengths in training_batches(count))


def _sides(pairs: list[list[list[int]]]) -> Sides:
    sides = []
    for side in range(2):
        rows = [pair[side] for pair in pairs]
        longest = max(map(len, rows))
        sides.append(torch.tensor([row + [PAD] * (longest - len(row)) for row in rows]))
        sides.append(torch.tensor([len(row) for row in rows]))
    return sides[0], sides[1], sides[2], sides[3]
