"""How additive scores and their gradients are computed, block of rows by block of rows.

`Exponentials` is the C kernel: tanh(a + b) = 1 − 2 / (1 + e^2a · e^2b), with the exponentials
computed once for each query and key. `Chunks` is plain PyTorch with a real tanh: for inputs beyond
the range of the former, and for installations without a compiler. `Tiles` is Triton, on a GPU.
"""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from regard.attention.core.records import record, replace, static
from regard.attention.kernels import triton_loader
from regard.native import additive, loader
from regard.native.eligibility import usable

LANES = 32
"""The C kernel takes hidden units in runs of so many."""

FEW = 1 << 16
"""Up to so many numbers, the keys of an item stay in the cache beside some rows of queries."""

CHUNK = 1 << 18
"""How many numbers plain PyTorch holds at once: few enough to stay in the cache."""

Queries = Float[Tensor, "item query hidden"]
Keys = Float[Tensor, "memory key hidden"]
Sums = tuple[Tensor, Tensor, Tensor]


@record
class AdditiveInputs:
    """Projected queries against projected keys, in float32, batch axes as one.

    Item n reads the keys of memory `which[n]`.
    """

    queries: Queries
    keys: Keys
    v: Float[Tensor, "item hidden"]
    which: Int[Tensor, " item"]
    exponentials: Float[Tensor, "memory key width"] | None = None
    reach: Float[Tensor, "memory key 1"] | None = None
    """What the memory kept: e^2k, and the largest |k|."""


@record
class SharedBatch:
    """A tensor with its batch axes as one; item n looks at part `which[n]` of it."""

    tensor: Shaped[Tensor, "part row column"]
    which: Int[Tensor, " item"]


@record
class MaskBias:
    """What a softmax read sees beside the scores, for a block of rows."""

    allowed: SharedBatch | None
    bias: SharedBatch | None
    temperature: float = static()


@runtime_checkable
class Backend(Protocol):
    """Scores of a block of rows, and sums of what their gradients send back."""

    def scores(self, rows: slice) -> Float[Tensor, "item row key"]:
        """The scores of these rows."""

    def accumulate_grad(self, rows: slice, sent: Float[Tensor, "item row key"]) -> None:
        """Add what the gradient of these rows' scores sends to queries, keys and v."""

    def clear(self) -> None:
        """Forget what was sent before."""

    def gradients(self) -> Sums:
        """What was sent: `(item, query, hidden)`, `(item, key, hidden)`, `(item, hidden)`."""


@runtime_checkable
class ReadsContext(Protocol):
    """An engine that can also select by softmax and sum the values, and hold no weights."""

    def takes(self, values: Tensor) -> bool:
        """Can it sum these?"""

    def read(
        self, rows: slice, values: SharedBatch, sight: MaskBias
    ) -> Float[Tensor, "item row size"]:
        """The context of these rows."""


def shared_batch(tensor: Tensor, batch: tuple[int, ...]) -> SharedBatch:
    """The tensor, `(*batch or 1, row, column)`, and who looks at which part of it."""
    own = tensor.shape[:-2]
    which = torch.arange(own.numel(), device=tensor.device).view(own).expand(batch)
    return SharedBatch(tensor.reshape(-1, *tensor.shape[-2:]), which.reshape(-1).contiguous())


def backend(problem: AdditiveInputs) -> Backend:
    """The fastest engine whose range holds these queries and keys."""
    if triton_loader.serves(problem.queries):
        return Triton(problem)
    if not usable(problem.queries, problem.keys):
        return ChunkedTorch(problem)
    if problem.exponentials is None and few(problem.keys):
        return NativeExp(problem, problem.queries, problem.keys, additive.VECTORS)
    queries, farthest = exponentials(problem.queries)
    if problem.exponentials is None or problem.reach is None:
        keys, reach = exponentials(problem.keys)
    else:
        keys, reach = problem.exponentials, float(problem.reach.amax())
    if not additive.reciprocal_group(farthest + reach):  # or NaN: tanh takes any
        return ChunkedTorch(problem)
    return NativeExp(problem, queries, keys, farthest + reach)


def few(keys: Float[Tensor, "*batch key hidden"]) -> bool:
    """Are the exponentials of an item's keys so few that C makes them as it goes, in its cache?"""
    count, size = keys.shape[-2:]
    return size % LANES == 0 and count * size <= FEW and usable(keys)


def exponentials(vectors: Float[Tensor, "*batch length hidden"]) -> tuple[Tensor, float]:
    """e^2x, padded with zeros to whole lanes, and the largest |x|."""
    return additive.exponentials(vectors, -(-vectors.shape[-1] // LANES) * LANES)


class NativeExp:
    """The C kernel, from exponentials, or from vectors whose exponentials it makes itself.

    Only the latter may turn out to be out of range; then plain PyTorch takes over. Scores come
    first, so that what several blocks of rows send goes one way.
    """

    def __init__(
        self, problem: AdditiveInputs, queries: Tensor, keys: Tensor, reach: float
    ) -> None:
        self.problem, self.how = problem, additive.AdditiveMethod(reach, loader.is_amd())
        self.queries, self.keys = queries.contiguous(), keys.contiguous()
        self.hidden, self.which = problem.queries.shape[-1], problem.which
        missing = queries.shape[-1] - self.hidden
        v = torch.nn.functional.pad(problem.v, (0, missing)) if missing else problem.v
        self.v = v.contiguous()
        self.sums: Sums | None = None
        self.instead: ChunkedTorch | None = None

    def scores(self, rows: slice) -> Float[Tensor, "item row key"]:
        if self.instead is None:
            queries = self.queries[:, rows]
            scores = queries.new_empty(*queries.shape[:2], self.keys.shape[-2])
            if additive.additive_scores(queries, self.keys, self.v, self.which, scores, self.how):
                return scores
            self.instead = ChunkedTorch(self.problem)
        return self.instead.scores(rows)

    def accumulate_grad(self, rows: slice, sent: Float[Tensor, "item row key"]) -> None:
        if self.instead is None:
            if self._sent(rows, sent):
                return
            self.instead = ChunkedTorch(self.problem)
        self.instead.accumulate_grad(rows, sent)

    def _sent(self, rows: slice, sent: Tensor) -> bool:
        fresh = self.sums is None
        if self.sums is None:
            items, width = self.v.shape
            keys = self.keys.new_empty(items, self.keys.shape[-2], width)
            # Rows are sent to once, each in its block; nothing needs zeros to begin with.
            self.sums = torch.empty_like(self.queries), keys, torch.empty_like(self.v)
        part = self.sums[0][:, rows], *self.sums[1:]
        return additive.additive_backward(
            self.queries[:, rows], self.keys, self.v, self.which, sent.contiguous(), part,
            self.how, overwrite=fresh,
        )  # fmt: skip

    def clear(self) -> None:
        self.sums = None
        if self.instead is not None:
            self.instead.clear()

    def gradients(self) -> Sums:
        if self.instead is not None:
            return self.instead.gradients()
        assert self.sums is not None
        queries, keys, v = (each[..., : self.hidden] for each in self.sums)
        return queries, keys, v


class ChunkedTorch:
    """Plain PyTorch: tanh of a few rows at a time, computed again on the way back."""

    def __init__(self, problem: AdditiveInputs) -> None:
        self.queries, self.v = problem.queries, problem.v
        self.keys = problem.keys[problem.which]
        self.sums: Sums | None = None

    def scores(self, rows: slice) -> Float[Tensor, "item row key"]:
        blocks = [self._hidden(row) @ self.v[:, None, :, None] for row in self._blocks(rows)]
        return torch.cat(blocks, 1).squeeze(-1)

    def accumulate_grad(self, rows: slice, sent: Float[Tensor, "item row key"]) -> None:
        if self.sums is None:
            zeros = [torch.zeros_like(each) for each in (self.queries, self.keys, self.v)]
            self.sums = zeros[0], zeros[1], zeros[2]
        queries, keys, v = self.sums
        for block in self._blocks(rows):
            hidden = self._hidden(block)
            start = rows.indices(self.queries.shape[1])[0]
            part = sent[:, block.start - start : block.stop - start, :, None]
            v += (hidden * part).sum((1, 2))
            slope = (1 - hidden * hidden) * part * self.v[:, None, None, :]
            queries[:, block] += slope.sum(2)
            keys += slope.sum(1)

    def clear(self) -> None:
        self.sums = None

    def gradients(self) -> Sums:
        assert self.sums is not None
        return self.sums

    def _hidden(self, rows: slice) -> Float[Tensor, "item row key hidden"]:
        return (self.queries[:, rows, None, :] + self.keys[:, None, :, :]).tanh_()

    def _blocks(self, rows: slice) -> list[slice]:
        start, stop, _ = rows.indices(self.queries.shape[1])
        size = max(1, CHUNK // max(1, self.keys.numel()))
        return [slice(at, min(at + size, stop)) for at in range(start, stop, size)]


class Triton:
    """The Triton kernels: any range, since they take a real tanh."""

    def __init__(self, problem: AdditiveInputs) -> None:
        whole = {name: getattr(problem, name).contiguous() for name in ("queries", "keys", "v")}
        self.problem = replace(problem, **whole)
        self.sums: Sums | None = None

    def scores(self, rows: slice) -> Float[Tensor, "item row key"]:
        return triton_loader.library().scores(self.problem, rows)

    def takes(self, values: Tensor) -> bool:
        return values.dtype == torch.float32 and values.shape[-1] <= triton_loader.library().WIDEST

    def read(
        self, rows: slice, values: SharedBatch, sight: MaskBias
    ) -> Float[Tensor, "item row size"]:
        return triton_loader.library().read(self.problem, rows, values, sight)

    def accumulate_grad(self, rows: slice, sent: Float[Tensor, "item row key"]) -> None:
        queries, keys, v = self.problem.queries, self.problem.keys, self.problem.v
        if self.sums is None:
            to_keys = keys.new_zeros(len(queries), *keys.shape[1:])
            self.sums = torch.zeros_like(queries), to_keys, torch.zeros_like(v)
        triton_loader.library().backward(self.problem, rows, sent.contiguous(), self.sums)

    def clear(self) -> None:
        self.sums = None

    def gradients(self) -> Sums:
        assert self.sums is not None
        return self.sums
