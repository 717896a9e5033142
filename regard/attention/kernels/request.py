"""One read as plain data, without modules: what a kernel takes."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.core.axes import (
    Allowed,
    Count,
    NonFiniteFlags,
    Prepared,
    Scores,
    Values,
    Weights,
)
from regard.attention.core.records import cache_field, record, replace, static
from regard.attention.kernels.comparison import Comparison
from regard.attention.kernels.packed_memory import PackedMemory
from regard.attention.kernels.rule import Rule
from regard.attention.masks import Mask, PairIndex

EMPTY = "a size is 0, which is left to the reference"


@dataclass(slots=True)
class ReadCache:
    """What kernels compute of a memory and its mask alone, the same for each step of a decoder."""

    packed: PackedMemory | None = None
    """For `SingleQuery`: the memory as C reads it."""

    span: tuple[Count, Count] | None = None
    """For `DotSoftmax`: the first key that each query may read, and the one after the last."""


def _empty_cache() -> ReadCache:
    """As a function: torch.compile traces no class that is a default factory."""
    return ReadCache()


@record
class View:
    """What may be read: the pairs, the mask over them, and how many queries came before."""

    pairs: PairIndex
    mask: Mask | None = None
    batch: tuple[int, ...] = static(default=())
    step: int = static(default=0)
    cache: ReadCache = cache_field(init=True, default_factory=_empty_cache)
    """Shared with the same view at later steps."""

    def allowed(self) -> Allowed | None:
        """Which pairs may read; None if all may."""
        return None if self.mask is None else self.mask.allows(self.pairs)

    def visible_counts(self) -> Count:
        """How many keys each query may read: the S of a formula."""
        if self.mask is None:
            return torch.tensor([[self.pairs.keys]], device=self.pairs.device)
        return self.mask.visible_counts(self.pairs)

    def at_step(self, step: int) -> "View":
        """The same view after so many queries, with the same cache."""
        return View(self.pairs, self.mask, self.batch, step, self.cache)

    def rows(self, index: Int[Tensor, " row"]) -> "View":
        """The view of some of the queries."""
        return replace(self, pairs=self.pairs.take_rows(index))


@record
class Request:
    """One read: queries against keys, the rule for the weights, the values, what is visible."""

    comparison: Comparison
    rule: Rule
    values: Values
    view: View
    cached: Prepared
    """What kernels cache of the keys in the memory, by name."""

    nonfinite_keys: NonFiniteFlags | None = None

    @property
    def wants_gradient(self) -> bool:
        """Will autograd record this read?"""
        return torch.is_grad_enabled() and (
            self.comparison.requires_grad or self.values.requires_grad
        )

    @property
    def shape(self) -> torch.Size:
        """`(*batch, query, key)`."""
        return self.comparison.shape

    @property
    def is_empty(self) -> bool:
        """Is a size 0: of the batch, the queries, the keys or the vectors?

        C is not called then: the address of an empty tensor is null, which means "not given".
        """
        return not self.values.numel() or self.comparison.is_empty

    def rows(self, index: Int[Tensor, " row"]) -> "Request":
        """The same read for some of the queries."""
        return replace(
            self,
            comparison=self.comparison.rows(index),
            rule=self.rule.rows(index, self.comparison.shape[-2]),
            view=self.view.rows(index),
        )

    def columns(self, part: slice) -> "Request":
        """The same read of some of the keys only, at their positions."""
        pairs, nonfinite = self.view.pairs, self.nonfinite_keys
        return replace(
            self,
            comparison=self.comparison.columns(part),
            values=self.values[..., part, :],
            view=replace(self.view, pairs=pairs.at(pairs.column_index()[0, part])),
            cached={name: tensor[..., part, :] for name, tensor in self.cached.items()},
            nonfinite_keys=None if nonfinite is None else nonfinite[..., part],
        )

    def select(self, scores: Scores) -> Weights:
        """Scores to weights, before dropout."""
        if not scores.shape[-1]:
            return scores  # without keys there are no weights
        return self.rule.weights(scores, self.view.allowed(), self.view.pairs)

    def weights(self) -> Weights:
        """The weights of this read, from the scores of all pairs."""
        return self.restore_nan(self.select(self.comparison.scores()))

    def log_probs(self) -> Float[Tensor, "*#batch query"]:
        """Log-probability of the sampled key; 0 where nothing is sampled."""
        scores = self.comparison.scores()
        return self.rule.log_probs(scores, self.view.allowed(), self.select(scores))

    def entropy(self) -> Float[Tensor, "*#batch query"]:
        """Entropy of the sampled distribution, in nats; 0 where nothing is sampled."""
        return self.rule.entropy(self.comparison.scores(), self.view.allowed())

    def restore_nan(self, weights: Weights) -> Weights:
        """The weights, NaN for each query that may read a non-finite key."""
        return restore_nan(weights, self.nonfinite_keys, self.view)


def restore_nan(
    result: Tensor, nonfinite: NonFiniteFlags | None, view: View, head_axes: int = 0
) -> Tensor:
    """The result, NaN for each query that may read a non-finite key or value: as in plain code.

    These were zeroed before the first parameter multiplied them, so that they reach no other
    query, and no gradient.
    """
    if nonfinite is None:
        return result
    allowed = view.allowed()
    reached = nonfinite if allowed is None else allowed & nonfinite
    return result.masked_fill(any_head(reached.any(-1, keepdim=True), head_axes), torch.nan)


def any_head(
    flags: Bool[Tensor, "*#batch #query 1"], head_axes: int
) -> Bool[Tensor, "*#items #query 1"]:
    """True where a flag is True for any of the heads, without their axes."""
    for _ in range(head_axes if flags.ndim > 2 else 0):
        flags = flags.any(-3)
    return flags
