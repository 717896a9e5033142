"""The same by hand in plain PyTorch, as people write it."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.contestants.inputs import drawn, lengths_of
from benchmarks.contestants.stepping import stepped
from benchmarks.steps import FORWARD

Case = dict[str, Any]
Call = Callable[[], object]


def _tanh_read(q: Tensor, k: Tensor, values: Tensor, v: Tensor) -> Tensor:
    scores = torch.tanh(q[:, :, None] + k[:, None]) @ v
    return scores.softmax(-1) @ values


def additive(case: Case) -> Call:
    """`tanh(q[:, :, None] + k[:, None]) @ v`, softmax, and a matmul."""
    batch, queries, keys, hidden = case["batch"], case["queries"], case["keys"], case["hidden"]
    shapes = (batch, queries, hidden), (batch, keys, hidden), (batch, keys, hidden), (1, hidden)
    q, k, values, v = leaves = drawn(*shapes, step=case["step"])
    return stepped(lambda: _tanh_read(q, k, values, v[0]), leaves, case)


def additive_whole(case: Case) -> Call:
    """The same with the projections of queries and keys."""
    batch, queries, keys, hidden = case["batch"], case["queries"], case["keys"], case["hidden"]
    shapes = (batch, queries, hidden), (batch, keys, hidden), (batch, keys, hidden)
    q, k, values = leaves = drawn(*shapes, step=case["step"])
    torch.manual_seed(0)
    of_queries, of_keys = (nn.Linear(hidden, hidden, bias=False) for _ in range(2))
    v = nn.Parameter(torch.randn(hidden) / math.sqrt(hidden))
    return stepped(
        lambda: _tanh_read(of_queries(q), of_keys(k), values, v),
        [*leaves, of_queries.weight, of_keys.weight, v],
        case,
    )


def dot_matmul(case: Case) -> Call:
    """A dot product, softmax, and a matmul: the scores are held."""

    def read(q: Tensor, k: Tensor, values: Tensor, scale: float) -> Tensor:
        q = q if scale == 1.0 else q * scale
        return (q @ k.mT).softmax(-1) @ values

    return _dot(case, read)


def dot_sdpa(case: Case) -> Call:
    """The same by torch's fused attention."""

    def read(q: Tensor, k: Tensor, values: Tensor, scale: float) -> Tensor:
        return functional.scaled_dot_product_attention(q, k, values, scale=scale)

    return _dot(case, read)


def _dot(case: Case, read: Callable[[Tensor, Tensor, Tensor, float], Tensor]) -> Call:
    """Each score as one would write it: something to make of queries and keys, then a dot."""
    size, length = case["size"], case["length"]
    shape = case["batch"], case["heads"], length, size
    q, k, values = drawn(shape, shape, shape, step=case["step"])
    rows = {"Bilinear": size, "Location": length}.get(case["score"], 1)
    weight = nn.Parameter(torch.randn(rows, size) / math.sqrt(size))
    ready: dict[str, Callable[[], tuple[Tensor, Tensor]]] = {
        "Dot": lambda: (q, k),
        "ScaledDot": lambda: (q, k),
        "Bilinear": lambda: (q, k @ weight.mT),
        "Cosine": lambda: (functional.normalize(q, dim=-1), functional.normalize(k, dim=-1)),
        "Location": lambda: (q, weight.expand(*shape[:2], length, size)),
    }
    scale = 1 / math.sqrt(size) if case["score"] == "ScaledDot" else 1.0
    learned = [weight] if case["score"] in ("Bilinear", "Location") else []
    leaves = [q, values] if case["score"] == "Location" else [q, k, values]
    compared = ready[case["score"]]
    return stepped(lambda: read(*compared(), values, scale), [*leaves, *learned], case)


def by_pairs(case: Case) -> Call:
    """Distances and cosines by what torch has for all pairs at once; the scores are held."""
    shape = case["batch"], case["heads"], case["length"], case["size"]
    q, k, values = leaves = drawn(shape, shape, shape, step=case["step"])
    sigma = case.get("sigma", 1.0)
    score: dict[str, Callable[[], Tensor]] = {
        "Cosine": lambda: functional.normalize(q, dim=-1) @ functional.normalize(k, dim=-1).mT,
        "Gaussian": lambda: torch.cdist(q, k).square() / (-2 * sigma**2),
        "InverseDistance": lambda: 1 / torch.cdist(q, k).clamp(min=1e-3),
    }
    scores = score[case["score"]]
    return stepped(lambda: scores().softmax(-1) @ values, leaves, case)


def local(case: Case) -> Call:
    """local-p as a mask over all keys."""
    size, window, keys = case["size"], case["window"], case["keys"]
    shapes = [(case["batch"], case[name], size) for name in ("queries", "keys", "keys")]
    q, k, values = leaves = drawn(*shapes, step=case["step"])
    torch.manual_seed(0)
    weight = nn.Parameter(torch.randn(size, size) / math.sqrt(size))
    v = nn.Parameter(torch.randn(size, 1) / math.sqrt(size))
    places = torch.arange(keys)

    def read() -> Tensor:
        centres = keys * torch.sigmoid(torch.tanh(q @ weight.mT) @ v)
        distances = places - centres
        scores = (q * (1 / math.sqrt(size))) @ k.mT
        weights = scores.masked_fill(distances.abs() > window, -torch.inf).softmax(-1)
        return (weights * torch.exp(distances.square() / (-2 * (window / 2) ** 2))) @ values

    return stepped(read, [*leaves, weight, v], case)


def step_by_ops(case: Case) -> Call:
    """One step of a decoder, in as few operations as it takes."""
    q, k, values, hidden = _memory(case)
    size = case["size"]
    scale = 1 / math.sqrt(size)
    if case["score"] == "ScaledDot":
        turned = k.mT

        def score() -> Tensor:
            return (q * scale) @ turned
    else:
        of_queries, v = drawn((size, size), (size, 1))
        of_queries = of_queries * scale

        def score() -> Tensor:
            return (torch.tanh(functional.linear(q, of_queries) + k) @ v).mT

    def read() -> Tensor:
        scores = score() if hidden is None else score().masked_fill(hidden, -torch.inf)
        return scores.softmax(-1) @ values

    return stepped(read, [], {"step": FORWARD})


def step_by_sdpa(case: Case) -> Call:
    """One step by torch's fused attention."""
    q, k, values, hidden = _memory(case)
    allowed = None if hidden is None else ~hidden

    def read() -> Tensor:
        return functional.scaled_dot_product_attention(q, k, values, attn_mask=allowed)

    return stepped(read, [], {"step": FORWARD})


def _memory(case: Case) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """A query, keys, values, and which keys are hidden."""
    batch, keys, size = case["batch"], case["keys"], case["size"]
    q, k, values = drawn((batch, 1, size), (batch, keys, size), (batch, keys, size))
    if not case["padding"]:
        return q, k, values, None
    hidden = torch.arange(keys) >= torch.tensor(lengths_of(batch, keys))[:, None, None]
    return q, k, values, hidden


def training_step(case: Case) -> Call:
    """One step of training a small model: what an allocator makes a difference to."""
    torch.manual_seed(0)
    size = case["size"]
    model: nn.Module = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(size, 8, 4 * size, 0.0, batch_first=True),
        2, enable_nested_tensor=False,
    )  # fmt: skip
    if case["model"] == "GRU":
        model = Reader(size)
    (inputs,) = drawn((case["batch"], case["length"], size))
    optimiser = torch.optim.AdamW(model.parameters())

    def train() -> None:
        optimiser.zero_grad()
        model(inputs).square().mean().backward()
        optimiser.step()

    return train


class Reader(nn.Module):
    """A recurrent encoder that reads what it has encoded, by additive attention."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.encoder = nn.GRU(size, size, batch_first=True)
        self.of_queries, self.of_keys = (nn.Linear(size, size, bias=False) for _ in range(2))
        self.v = nn.Parameter(torch.randn(size) / math.sqrt(size))

    def forward(self, inputs: Tensor) -> Tensor:
        """Every state reads all states."""
        states = self.encoder(inputs)[0]
        return _tanh_read(self.of_queries(states), self.of_keys(states), states, self.v)
