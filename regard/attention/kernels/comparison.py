"""Queries against prepared keys, parameters resolved: the closed set that kernels know.

A `Score` is a module with parameters; a comparison is what it computes in one read. Kernels look at
its type to see whether they can be fast.

    DotComparison              q·k · scale                  dot, scaled, bilinear, cosine, location
    AdditiveComparison         vᵀ tanh(q + k)               additive
    GaussianComparison         −‖q − k‖² · precision / 2    kernel regression
    InverseDistanceComparison  1 / max(‖q − k‖, floor)      inverse distance
    PrecomputedScores          the scores themselves        any callable

Each may carry a `bias`, `(*batch, query | 1, key | 1)`, that is added to its scores.
"""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.core.axes import Bias, Queries, Scalar, Scores
from regard.attention.core.errors import ShapeError
from regard.attention.core.gather import gather_pairs, gather_rows
from regard.attention.core.numerics import broadcast_batch, matmul, upcast
from regard.attention.core.records import record, replace, static, tensors, tree_map, version
from regard.attention.core.tracing import in_functorch
from regard.attention.kernels.gathered_matmul import dot
from regard.attention.kernels.squared_distances import (
    elements_per_pair,
    pairwise,
    squared_distances,
)

Windows = Int[Tensor, "*#batch window column"]
"""The keys that are scored: some for each window, and as many queries in each."""


class Comparison(ABC):
    """Queries against prepared keys; `scores()` compares every pair."""

    __slots__ = ()
    bias: Bias | None

    @abstractmethod
    def unbiased(self) -> Scores:
        """The scores of all pairs without the bias, in float32 at least."""

    @abstractmethod
    def rows(self, index: Int[Tensor, " row"]) -> "Comparison":
        """Some of the queries only."""

    @abstractmethod
    def columns(self, part: slice) -> "Comparison":
        """Some of the keys only."""

    @abstractmethod
    def unbiased_at(self, columns: Windows) -> Scores:
        """The scores at some columns only, without the bias, in float32 at least."""

    @property
    @abstractmethod
    def shape(self) -> torch.Size:
        """`(*batch, query, key)`."""

    @property
    @abstractmethod
    def dtype(self) -> torch.dtype:
        """That of the queries and keys."""

    @property
    def requires_grad(self) -> bool:
        """Does any of its tensors require a gradient?"""
        return any(tensor.requires_grad for tensor in tensors(self))

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Is one of its sizes 0?"""

    @property
    @abstractmethod
    def version(self) -> int:
        """The sum of its tensors' version counters: it changes when one is modified in place."""

    @property
    def width(self) -> int:
        """How many elements are allocated for a pair while it is scored."""
        return 1

    @property
    def gathered_width(self) -> int:
        """The same if the pair's key is gathered."""
        return 1

    def scores(self) -> Scores:
        """The scores of all pairs, bias included, in float32 at least."""
        scores = self.unbiased()
        return scores if self.bias is None else scores + upcast(self.bias)

    def gather(self, columns: Windows) -> Scores:
        """Scores of each query with its window's keys, `(*batch, query, column)`, bias included.

        Args:
            columns: `(*batch, window, column)`: the keys of each window. Queries are assigned to
                the windows in order, equally many to each.
        """
        scores = self.unbiased_at(columns)
        if self.bias is None:
            return scores
        return scores + upcast(gather_pairs(self.bias, columns_per_query(columns, self.shape[-2])))

    @abstractmethod
    def check(self) -> None:
        """Raise unless its tensors fit together: C does not check."""

    def biased(self, term: Bias) -> "Comparison":
        """The same comparison with one more term added to its scores."""
        return replace(self, bias=term if self.bias is None else upcast(self.bias) + upcast(term))


class VectorComparison(Comparison):
    """A comparison of vectors: queries `(*batch, query, size)`, keys `(*batch, key, size)`."""

    __slots__ = ()
    queries: Queries
    keys: Float[Tensor, "*#batch key query_size"]

    def rows(self, index: Int[Tensor, " row"]) -> "VectorComparison":
        bias = take(self.bias, index, self.queries.shape[-2])
        return replace(self, queries=self.queries[..., index, :], bias=bias)

    def columns(self, part: slice) -> "VectorComparison":
        return replace(self, keys=self.keys[..., part, :], bias=_columns(self.bias, part))

    def in_windows(self, columns: Windows) -> "VectorComparison":
        """Each window as an item of a batch, its queries against its keys; without the bias."""
        items = tree_map(replace(self, bias=None), lambda tensor: tensor.unsqueeze(-3))
        queries = self.queries.unflatten(-2, (columns.shape[-2], -1))
        return replace(items, queries=queries, keys=gather_rows(self.keys, columns))

    def unbiased_at(self, columns: Windows) -> Scores:
        return self.in_windows(columns).unbiased().flatten(-3, -2)

    @property
    def shape(self) -> torch.Size:
        batch = broadcast_batch(self.queries.shape[:-2], self.keys.shape[:-2])
        return torch.Size((*batch, self.queries.shape[-2], self.keys.shape[-2]))

    @property
    def dtype(self) -> torch.dtype:
        return self.queries.dtype

    @property
    def is_empty(self) -> bool:
        return not self.queries.numel() or not self.keys.numel()

    def check(self) -> None:
        size, needed = self.queries.shape[-1], self.keys.shape[-1]
        if size != needed:
            raise ShapeError(
                f"queries were projected to size {size} but the memory's keys have size {needed}. "
                "Prepare the keys with this attention."
            )

    @property
    def version(self) -> int:
        try:
            total = self.queries._version + self.keys._version
        except RuntimeError:  # one of them is an inference tensor
            total = version(self.queries) + version(self.keys)
        return total if self.bias is None else total + version(self.bias)


@record
class DotComparison(VectorComparison):
    """q·k · scale · factor; a learned factor is a tensor."""

    queries: Queries
    keys: Float[Tensor, "*#batch key query_size"]
    scale: float = static(default=1.0)
    factor: Scalar | None = None
    bias: Bias | None = None

    def scaled_queries(self) -> Queries:
        """The queries with both factors in them, in float32 at least."""
        queries = upcast(self.queries)
        queries = queries if self.scale == 1.0 else queries * self.scale
        return queries if self.factor is None else queries * upcast(self.factor)

    def unbiased(self) -> Scores:
        if self.factor is not None or self.scale == 1.0:
            return matmul(self.scaled_queries(), upcast(self.keys).mT)
        return matmul(upcast(self.queries), upcast(self.keys).mT, self.scale)

    def unbiased_at(self, columns: Windows) -> Scores:
        if columns.shape[-2] == self.queries.shape[-2]:
            return dot(self.scaled_queries(), self.keys, columns)
        return VectorComparison.unbiased_at(self, columns)  # super() fails with slots


@record
class AdditiveComparison(VectorComparison):
    """vᵀ tanh(q + k), queries and keys projected into one hidden space."""

    queries: Queries
    keys: Float[Tensor, "*#batch key query_size"]
    v: Float[Tensor, "*#batch 1 query_size"]
    bias: Bias | None = None

    def unbiased(self) -> Scores:
        hidden = torch.tanh(pairwise(self.queries) + upcast(self.keys)[..., None, :, :])
        return (hidden @ upcast(self.v)[..., None, :, :].mT).squeeze(-1)

    @property
    def width(self) -> int:
        return self.keys.shape[-1]

    @property
    def gathered_width(self) -> int:
        return self.keys.shape[-1]


class DistanceComparison(VectorComparison):
    """A function of ‖q − k‖², which may hold a vector for each pair."""

    __slots__ = ()

    @property
    def width(self) -> int:
        return elements_per_pair(self.queries, self.keys)

    @property
    def gathered_width(self) -> int:
        return self.keys.shape[-1]


@record
class GaussianComparison(DistanceComparison):
    """−‖q − k‖² · precision / 2."""

    queries: Queries
    keys: Float[Tensor, "*#batch key query_size"]
    precision: Scalar
    bias: Bias | None = None

    def unbiased(self) -> Scores:
        squares, factor = squared_distances(self.queries, self.keys), upcast(self.precision) * -0.5
        learns = torch.is_grad_enabled() and (squares.requires_grad or factor.requires_grad)
        return squares * factor if learns or in_functorch() else squares.mul_(factor)

    def as_dot(self, visible: Bool[Tensor, "*#batch #key 1"] | None = None) -> DotComparison:
        """The same up to a constant for each query, which softmax cancels.

        −‖q − k‖²/2 = q·k − ‖k‖²/2 − ‖q‖²/2 is a dot product with one more dimension, taken
        around the keys' mean: far from the origin the three terms would cancel. Keys that are
        visible to no query are left out of the mean, and set to 0.
        """
        keys, queries = upcast(self.keys), upcast(self.queries)
        if visible is None:
            centre = keys.mean(-2, keepdim=True)
            keys = keys - centre
        else:
            shape = *visible.shape[:-2], *keys.shape[-2:-1], 1
            count = visible.expand(shape).sum(-2, keepdim=True)
            centre = torch.where(visible, keys, 0.0).sum(-2, keepdim=True) / count.clamp(min=1)
            keys = torch.where(visible, keys - centre, 0.0)
        queries = queries - centre
        last = keys.square().sum(-1, keepdim=True) * -0.5
        ones = torch.ones_like(queries[..., :1])
        augmented = torch.cat([queries, ones], -1), torch.cat([keys, last], -1)
        return DotComparison(*augmented, factor=upcast(self.precision), bias=self.bias)


@record
class InverseDistanceComparison(DistanceComparison):
    """1 / max(‖q − k‖, floor)."""

    queries: Queries
    keys: Float[Tensor, "*#batch key query_size"]
    floor: float = static()
    bias: Bias | None = None

    def unbiased(self) -> Scores:
        # Clamped before the root, whose gradient at 0 is infinite.
        squares, least = squared_distances(self.queries, self.keys), self.floor**2
        if squares.requires_grad or in_functorch():
            return squares.clamp(min=least).rsqrt()
        return squares.clamp_(min=least).rsqrt_()


@record
class PrecomputedScores(Comparison):
    """Scores that a callable returned; the weights are computed from these, however late."""

    scores_given: Scores
    bias: Bias | None = None

    def unbiased(self) -> Scores:
        return upcast(self.scores_given)

    def rows(self, index: Int[Tensor, " row"]) -> "PrecomputedScores":
        bias = take(self.bias, index, self.scores_given.shape[-2])
        return replace(self, scores_given=self.scores_given[..., index, :], bias=bias)

    def columns(self, part: slice) -> "PrecomputedScores":
        return replace(
            self, scores_given=self.scores_given[..., part], bias=_columns(self.bias, part)
        )

    def unbiased_at(self, columns: Windows) -> Scores:
        return upcast(
            gather_pairs(self.scores_given, columns_per_query(columns, self.scores_given.shape[-2]))
        )

    @property
    def shape(self) -> torch.Size:
        return self.scores_given.shape

    @property
    def dtype(self) -> torch.dtype:
        return self.scores_given.dtype

    def check(self) -> None:
        """Nothing to do: scores are checked when the callable returns them."""

    @property
    def is_empty(self) -> bool:
        return not self.scores_given.numel()

    @property
    def version(self) -> int:
        return version(self.scores_given) + (0 if self.bias is None else version(self.bias))


def columns_per_query(columns: Windows, queries: int) -> Int[Tensor, "*#batch query column"]:
    """Each query's columns: those of its window."""
    windows, width = columns.shape[-2:]
    if windows == queries:
        return columns
    repeated = columns.unsqueeze(-2).expand(*columns.shape[:-1], queries // windows, width)
    return repeated.flatten(-3, -2)


def take(tensor: Tensor | None, index: Tensor, rows: int) -> Tensor | None:
    """Some rows of a record's tensor, `(…, rows | 1, columns | 1)`; a shared row stays shared."""
    if tensor is None or tensor.shape[-2] != rows:
        return tensor
    return tensor[..., index, :]


def _columns(tensor: Tensor | None, part: slice) -> Tensor | None:
    return tensor if tensor is None or tensor.shape[-1] == 1 else tensor[..., part]
