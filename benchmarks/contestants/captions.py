"""Real captions as ids, in batches of like lengths: the same for everyone."""

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

IDS = Path(__file__).parents[2] / ".benchmarks" / "captions.json"
TRAINED = IDS.with_name("trained.pt")
"""Of a model that was trained: its weights by name, and the ids of what it translates."""
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


def trained() -> dict[str, Any]:
    """Weights, vocabulary and sources of the model that all translate with."""
    return torch.load(TRAINED, weights_only=True)


def in_batches(sources: list[list[int]]) -> list[list[list[int]]]:
    """The longest first."""
    ordered = sorted(sources, key=len, reverse=True)
    return [ordered[n : n + SENTENCES] for n in range(0, len(ordered), SENTENCES)]


def in_order(sources: list[list[int]], answers: list[list[int]]) -> list[list[int]]:
    """What was answered by batches, as the sources came."""
    order = sorted(range(len(sources)), key=lambda number: -len(sources[number]))
    found = dict(zip(order, answers, strict=True))
    return [found[number] for number in range(len(sources))]


def longest_for(sources: list[list[int]]) -> int:
    """How many tokens the answers of a batch may have; as `regard predict` has it."""
    return 2 * max(map(len, sources)) + 10


def _sides(pairs: list[list[list[int]]]) -> Sides:
    return *padded([pair[0] for pair in pairs]), *padded([pair[1] for pair in pairs])


def padded(rows: list[list[int]]) -> tuple[Tensor, Tensor]:
    """Ids and lengths."""
    longest = max(map(len, rows))
    filled = torch.tensor([row + [PAD] * (longest - len(row)) for row in rows])
    return filled, torch.tensor([len(row) for row in rows])
