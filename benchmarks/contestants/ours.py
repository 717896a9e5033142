"""regard's side of every case."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.contestants import plain
from benchmarks.contestants.inputs import drawn, lengths_of
from benchmarks.contestants.stepping import stepped
from benchmarks.measure import FailedError
from benchmarks.steps import BOTH, FORWARD
from regard import Attention, attend, kernels, masks, scores, selection
from regard.attention.kernels.additive import scores as compared
from regard.attention.kernels.additive_backends import (
    AdditiveInputs,
    NativeExp,
    backend,
    exponentials,
)

KEPT = ExitStack()
"""What lasts as long as the process."""

Case = dict[str, Any]
Call = Callable[[], object]


class Projected(scores.Score):
    """vᵀ tanh(q + k) of queries and keys that are projected already: the read alone."""

    compares = kernels.AdditiveComparison

    def __init__(self, v: Tensor) -> None:
        super().__init__()
        self.v = v

    def compare(self, queries: Tensor, prepared: Any, trace: Any) -> kernels.Comparison:
        """As `scores.Additive`, without its matrices."""
        return kernels.AdditiveComparison(queries, prepared["keys"], self.v[None])


def additive(case: Case) -> Call:
    """An additive read of projected queries and keys."""
    batch, queries, keys, hidden = case["batch"], case["queries"], case["keys"], case["hidden"]
    shapes = (batch, queries, hidden), (batch, keys, hidden), (batch, keys, hidden), (1, hidden)
    q, k, values, v = leaves = drawn(*shapes, step=case["step"])
    return stepped(lambda: attend(q, k, values, score=Projected(v)).context, leaves, case)


def additive_scores(case: Case) -> Call:
    """The scores alone, from projected queries and keys, nothing kept from before."""
    batch, queries, keys, hidden = case["batch"], case["queries"], case["keys"], case["hidden"]
    q, k, v = leaves = drawn((batch, queries, hidden), (batch, keys, hidden), (1, 1, hidden))
    return stepped(lambda: compared(kernels.AdditiveComparison(q, k, v), {}), leaves, case)


def additive_kernel(case: Case) -> Call:
    """The loop over the pairs alone, from exponentials that are there."""
    batch, queries, keys, hidden = case["batch"], case["queries"], case["keys"], case["hidden"]
    q, k, v = drawn((batch, queries, hidden), (batch, keys, hidden), (batch, hidden))
    kept, reach = exponentials(k)
    reaches = kept.new_full((*kept.shape[:-1], 1), reach)
    running = backend(AdditiveInputs(q, k, v, torch.arange(batch), kept, reaches))
    if not isinstance(running, NativeExp):
        raise FailedError("not run: the C kernels were not built")
    return stepped(lambda: running.scores(slice(None)), [], case)


def additive_whole(case: Case) -> Call:
    """An additive read with its projections."""
    batch, queries, keys, hidden = case["batch"], case["queries"], case["keys"], case["hidden"]
    shapes = (batch, queries, hidden), (batch, keys, hidden), (batch, keys, hidden)
    q, k, values = leaves = drawn(*shapes, step=case["step"])
    score = scores.Additive(hidden, hidden, hidden)
    return stepped(
        lambda: attend(q, k, values, score=score).context, [*leaves, *score.parameters()], case
    )


def dot(case: Case) -> Call:
    """A read by one of the scores that are dot products, or distances."""
    size, length = case["size"], case["length"]
    shape = case["batch"], case["heads"], length, size
    q, k, values = drawn(shape, shape, shape, step=case["step"])
    score = {
        "Dot": scores.Dot,
        "ScaledDot": scores.ScaledDot,
        "Bilinear": lambda: scores.Bilinear(size, size),
        "Cosine": scores.Cosine,
        "Location": lambda: scores.Location(size, length),
        "Gaussian": lambda: scores.Gaussian(case.get("sigma", 1.0)),
        "InverseDistance": scores.InverseDistance,
    }[case["score"]]()
    leaves = [q, values] if case["score"] == "Location" else [q, k, values]
    return stepped(
        lambda: attend(q, k, values, score=score).context, [*leaves, *score.parameters()], case
    )


def local(case: Case) -> Call:
    """A window around a predicted place: local-p."""
    size = case["size"]
    shapes = [(case["batch"], case[name], size) for name in ("queries", "keys", "keys")]
    q, k, values = leaves = drawn(*shapes, step=case["step"])
    torch.manual_seed(0)
    select = selection.LocalPredictive(size, case["window"])
    return stepped(
        lambda: attend(q, k, values, select=select).context, [*leaves, *select.parameters()], case
    )


def sparse(case: Case) -> Call:
    """Scores to weights, by themselves."""
    rows, keys = case["rows"], case["keys"]
    given = (drawn((rows, keys))[0] * case["spread"]).requires_grad_(case["step"] == BOTH)
    select = (
        selection.Sparsemax() if case["alpha"] == 2.0 else selection.Entmax(alpha=case["alpha"])
    )
    view = kernels.View(masks.PairIndex(rows, keys, given.device))
    rule = select.bind(given, view, {})
    return stepped(lambda: rule.weights(given, None, view.pairs), [given], case)


def step(case: Case) -> Call:
    """One step of a decoder that reads a prepared memory."""
    batch, keys, size = case["batch"], case["keys"], case["size"]
    q, k, values = drawn((batch, 1, size), (batch, keys, size), (batch, keys, size))
    score: nn.Module = scores.Additive(size, size, size)
    attention = Attention(score if case["score"] == "Additive" else scores.ScaledDot()).eval()
    mask = masks.Lengths(lengths_of(batch, keys)) if case["padding"] else None
    with torch.no_grad():
        memory = attention.prepare(k, values, mask)
    return stepped(lambda: attention.read(q, memory).context, [], {"step": FORWARD})


def training_step(case: Case) -> Call:
    """A step of training in a process where regard keeps freed heap, from now to its end."""
    if not KEPT.enter_context(kernels.keep_heap()):
        raise FailedError("not run: the C library here is not glibc")
    return plain.training_step(case)
