"""Reads a million keys in a process of its own, and says what it took and how far off it was.

    python -m tests.attention.million_keys softmax

The truth is found apart from the library, in float64, a part of the keys at a time.
"""

import json
import resource
import sys
from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from regard import Attention, scores, selection

KEYS, SIZE, PART = 1_000_000, 64, 10_007
Score = Callable[[Tensor, Tensor], Tensor]


def dot(queries: Tensor, keys: Tensor) -> Tensor:
    return queries @ keys.mT / SIZE**0.5


def inverse_distance(queries: Tensor, keys: Tensor) -> Tensor:
    squares = (queries**2).sum(-1, keepdim=True) - 2 * queries @ keys.mT + (keys**2).sum(-1)
    return squares.clamp(min=1e-6).rsqrt()


def parts(queries: Tensor, keys: Tensor, values: Tensor, score: Score) -> Iterator:
    """Scores and values of some keys at a time, in float64."""
    for some_keys, some_values in zip(keys.split(PART), values.split(PART), strict=True):
        yield score(queries.double(), some_keys.double()), some_values.double()


def online_softmax(*asked) -> Tensor:
    """Softmax that has seen no more than a part of the scores at once."""
    queries = asked[0]
    highest = torch.full((len(queries), 1), -torch.inf, dtype=torch.float64)
    total, context = torch.zeros_like(highest), 0.0
    for found, values in parts(*asked):
        higher = highest.maximum(found.amax(-1, keepdim=True))
        shares, faded = (found - higher).exp(), (highest - higher).exp()
        total = total * faded + shares.sum(-1, keepdim=True)
        context = context * faded + shares @ values
        highest = higher
    return context / total


def online_sparsemax(*asked) -> Tensor:
    """Sparsemax by bisection: the threshold above which the scores sum to 1."""
    highest = torch.stack([found.amax(-1, keepdim=True) for found, _ in parts(*asked)]).amax(0)
    # No key that is 1 or more below the best is ever read.
    near = [
        (found[:, chosen], values[chosen])
        for found, values in parts(*asked)
        if (chosen := (found > highest - 1).any(0)).any()
    ]
    found, values = torch.cat([n[0] for n in near], -1), torch.cat([n[1] for n in near])
    low, high = highest - 1, highest
    for _ in range(60):
        middle = (low + high) / 2
        enough = (found - middle).clamp(min=0).sum(-1, keepdim=True) >= 1
        low, high = torch.where(enough, middle, low), torch.where(enough, high, middle)
    return (found - low).clamp(min=0) @ values


CASES = {
    "softmax": (64, Attention(), dot, online_softmax),
    "sparsemax": (3, Attention(select=selection.Sparsemax()), dot, online_sparsemax),
    "inverse distance": (
        3,
        Attention(scores.InverseDistance()),
        inverse_distance,
        online_softmax,
    ),
}


def peak() -> float:
    """The most memory that this process has held, in MB."""
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def main(name: str) -> None:
    rows, attention, score, select = CASES[name]
    torch.manual_seed(0)
    queries, keys, values = torch.randn(rows, SIZE), torch.randn(KEYS, SIZE), torch.rand(KEYS, SIZE)
    with torch.no_grad():
        attention(queries, keys[:1009], values[:1009])  # what is loaded at first does not count
        before = peak()
        context = attention.prepare(keys, values).read(queries).context
        grown = peak() - before
        truth = select(queries, keys, values, score)
    off = (context - truth).abs().max() / truth.abs().max()
    json.dump({"grown": grown, "off": float(off)}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
