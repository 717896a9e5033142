"""How additive scores and their gradients are computed, a block of rows at a time.

`NativeExp` is the C kernel: tanh(a + b) = 1 − 2 / (1 + e^2a · e^2b), with the exponentials computed
once for each query and key. `ChunkedTorch` is plain PyTorch with a real tanh: for inputs beyond the
range of the former, and without the C extension. `Triton` is for a GPU.
"""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from regard.attention.core.records import record, replace, static
from regard.attention.kernels import triton_loader
from regard.native import additive, loader
from regard.native.eligibility import usable

PADDING = 32
"""The C kernel takes hidden sizes that are a multiple of it."""

CACHED_ELEMENTS = 1 << 16
"""An item's keys of up to so many elements stay in the cache beside some rows of queries."""

CHUNK = 1 << 18
"""How many elements plain PyTorch allocates at once: few enough to stay in the cache."""

Queries = Float[Tensor, "item query hidden"]
Keys = Float[Tensor, "memory key hidden"]
Grads = tuple[Tensor, Tensor, Tensor]


@record
class AdditiveInputs:
    """Projected queries against projected keys, in float32, batch axes as one.

    Item n reads the keys of memory `which[n]`.
    """

    queries: Queries
    keys: Keys
    v: Float[Tensor, "item hidden"]
    which: Int[Tensor, " item"]
    exp_keys: Float[Tensor, "memory key width"] | None = None
    max_abs_keys: Float[Tensor, "memory key 1"] | None = None
    """What the memory has cached: e^2k, and the largest |k|."""


@record
class SharedBatch:
    """A tensor with its batch axes as one; item n has part `which[n]` of it."""

    tensor: Shaped[Tensor, "part row column"]
    which: Int[Tensor, " item"]


@record
class MaskBias:
    """What a softmax read takes beside the scores, for a block of rows."""

    allowed: SharedBatch | None
    bias: SharedBatch | None
    temperature: float = static()


@runtime_checkable
class Backend(Protocol):
    """Scores of a block of rows, and the gradients of queries, keys and v, summed over blocks."""

    def scores(self, rows: slice) -> Float[Tensor, "item row key"]:
        """The scores of these rows."""

    def accumulate_grad(self, rows: slice, grad_scores: Float[Tensor, "item row key"]) -> None:
        """Add to the gradients, by that of these rows' scores."""

    def clear(self) -> None:
        """Set the gradients to zero."""

    def gradients(self) -> Grads:
        """`(item, query, hidden)`, `(item, key, hidden)`, `(item, hidden)`."""


@runtime_checkable
class ReadsContext(Protocol):
    """A backend that can also select by softmax and sum the values, without storing weights."""

    def takes(self, values: Tensor) -> bool:
        """Can it sum these?"""

    def read(
        self, rows: slice, values: SharedBatch, mask_bias: MaskBias
    ) -> Float[Tensor, "item row size"]:
        """The context of these rows."""


def shared_batch(tensor: Tensor, batch: tuple[int, ...]) -> SharedBatch:
    """The tensor, `(*batch or 1, row, column)`, and which part of it each item has."""
    shape = tensor.shape[:-2]
    which = torch.arange(shape.numel(), device=tensor.device).view(shape).expand(batch)
    return SharedBatch(tensor.reshape(-1, *tensor.shape[-2:]), which.reshape(-1).contiguous())


def backend(inputs: AdditiveInputs) -> Backend:
    """The fastest backend whose range includes these queries and keys."""
    if triton_loader.serves(inputs.queries):
        return Triton(inputs)
    if not usable(inputs.queries, inputs.keys):
        return ChunkedTorch(inputs)
    if inputs.exp_keys is None and fits_cache(inputs.keys):
        return NativeExp(inputs, inputs.queries, inputs.keys, additive.VECTORS)
    queries, max_abs = exponentials(inputs.queries)
    if inputs.exp_keys is None or inputs.max_abs_keys is None:
        keys, max_abs_keys = exponentials(inputs.keys)
    else:
        keys, max_abs_keys = inputs.exp_keys, float(inputs.max_abs_keys.amax())
    max_abs += max_abs_keys
    if not additive.reciprocal_group(max_abs):  # or NaN: tanh takes any
        return ChunkedTorch(inputs)
    return NativeExp(inputs, queries, keys, max_abs)


def fits_cache(keys: Float[Tensor, "*batch key hidden"]) -> bool:
    """Does C compute the exponentials of an item's keys on the fly, in its cache?"""
    count, size = keys.shape[-2:]
    return size % PADDING == 0 and count * size <= CACHED_ELEMENTS and usable(keys)


def exponentials(vectors: Float[Tensor, "*batch length hidden"]) -> tuple[Tensor, float]:
    """e^2x, zero-padded to a multiple of `PADDING`, and the largest |x|."""
    return additive.exponentials(vectors, -(-vectors.shape[-1] // PADDING) * PADDING)


class NativeExp:
    """The C kernel, from exponentials, or from vectors whose exponentials it computes itself.

    Only the latter may turn out to be out of range; then plain PyTorch takes over. Scores are
    computed before gradients, so that all blocks of rows use the same backend.
    """

    def __init__(
        self, inputs: AdditiveInputs, queries: Tensor, keys: Tensor, max_abs: float
    ) -> None:
        self.inputs, self.how = inputs, additive.AdditiveMethod(max_abs, loader.is_amd())
        self.queries, self.keys = queries.contiguous(), keys.contiguous()
        self.hidden, self.which = inputs.queries.shape[-1], inputs.which
        missing = queries.shape[-1] - self.hidden
        v = torch.nn.functional.pad(inputs.v, (0, missing)) if missing else inputs.v
        self.v = v.contiguous()
        self.grads: Grads | None = None
        self.fallback: ChunkedTorch | None = None

    def scores(self, rows: slice) -> Float[Tensor, "item row key"]:
        if self.fallback is None:
            queries = self.queries[:, rows]
            scores = queries.new_empty(*queries.shape[:2], self.keys.shape[-2])
            if additive.additive_scores(queries, self.keys, self.v, self.which, scores, self.how):
                return scores
            self.fallback = ChunkedTorch(self.inputs)
        return self.fallback.scores(rows)

    def accumulate_grad(self, rows: slice, grad_scores: Float[Tensor, "item row key"]) -> None:
        if self.fallback is None:
            if self._backward_in_c(rows, grad_scores):
                return
            self.fallback = ChunkedTorch(self.inputs)
        self.fallback.accumulate_grad(rows, grad_scores)

    def _backward_in_c(self, rows: slice, grad_scores: Tensor) -> bool:
        overwrite = self.grads is None
        if self.grads is None:
            items, width = self.v.shape
            keys = self.keys.new_empty(items, self.keys.shape[-2], width)
            # Nothing is zeroed: C overwrites the queries' rows, and, the first time, the others.
            self.grads = torch.empty_like(self.queries), keys, torch.empty_like(self.v)
        part = self.grads[0][:, rows], *self.grads[1:]
        return additive.additive_backward(
            self.queries[:, rows], self.keys, self.v, self.which, grad_scores.contiguous(), part,
            self.how, overwrite=overwrite,
        )  # fmt: skip

    def clear(self) -> None:
        self.grads = None
        if self.fallback is not None:
            self.fallback.clear()

    def gradients(self) -> Grads:
        if self.fallback is not None:
            return self.fallback.gradients()
        assert self.grads is not None
        queries, keys, v = (each[..., : self.hidden] for each in self.grads)
        return queries, keys, v


class ChunkedTorch:
    """Plain PyTorch: tanh of a few rows at a time, computed again in backward."""

    def __init__(self, inputs: AdditiveInputs) -> None:
        self.queries, self.v = inputs.queries, inputs.v
        self.keys = inputs.keys[inputs.which]
        self.grads: Grads | None = None

    def scores(self, rows: slice) -> Float[Tensor, "item row key"]:
        blocks = [self._hidden(row) @ self.v[:, None, :, None] for row in self._blocks(rows)]
        return torch.cat(blocks, 1).squeeze(-1)

    def accumulate_grad(self, rows: slice, grad_scores: Float[Tensor, "item row key"]) -> None:
        if self.grads is None:
            zeros = [torch.zeros_like(each) for each in (self.queries, self.keys, self.v)]
            self.grads = zeros[0], zeros[1], zeros[2]
        queries, keys, v = self.grads
        for block in self._blocks(rows):
            hidden = self._hidden(block)
            start = rows.indices(self.queries.shape[1])[0]
            part = grad_scores[:, block.start - start : block.stop - start, :, None]
            v += (hidden * part).sum((1, 2))
            slope = (1 - hidden * hidden) * part * self.v[:, None, None, :]
            queries[:, block] += slope.sum(2)
            keys += slope.sum(1)

    def clear(self) -> None:
        self.grads = None

    def gradients(self) -> Grads:
        assert self.grads is not None
        return self.grads

    def _hidden(self, rows: slice) -> Float[Tensor, "item row key hidden"]:
        return (self.queries[:, rows, None, :] + self.keys[:, None, :, :]).tanh_()

    def _blocks(self, rows: slice) -> list[slice]:
        start, stop, _ = rows.indices(self.queries.shape[1])
        size = max(1, CHUNK // max(1, self.keys.numel()))
        return [slice(at, min(at + size, stop)) for at in range(start, stop, size)]


class Triton:
    """The Triton kernels: any range, since they take a real tanh."""

    def __init__(self, inputs: AdditiveInputs) -> None:
        names = ("queries", "keys", "v")
        self.inputs = replace(inputs, **{n: getattr(inputs, n).contiguous() for n in names})
        self.grads: Grads | None = None

    def scores(self, rows: slice) -> Float[Tensor, "item row key"]:
        return triton_loader.library().scores(self.inputs, rows)

    def takes(self, values: Tensor) -> bool:
        return (
            values.dtype == torch.float32
            and values.shape[-1] <= triton_loader.library().MAX_VALUE_SIZE
        )

    def read(
        self, rows: slice, values: SharedBatch, mask_bias: MaskBias
    ) -> Float[Tensor, "item row size"]:
        return triton_loader.library().read(self.inputs, rows, values, mask_bias)

    def accumulate_grad(self, rows: slice, grad_scores: Float[Tensor, "item row key"]) -> None:
        queries, keys, v = self.inputs.queries, self.inputs.keys, self.inputs.v
        if self.grads is None:
            grad_keys = keys.new_zeros(len(queries), *keys.shape[1:])
            self.grads = torch.zeros_like(queries), grad_keys, torch.zeros_like(v)
        triton_loader.library().backward(self.inputs, rows, grad_scores.contiguous(), self.grads)

    def clear(self) -> None:
        self.grads = None

    def gradients(self) -> Grads:
        assert self.grads is not None
        return self.grads
