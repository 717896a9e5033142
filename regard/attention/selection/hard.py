"""Hard attention: each query reads one key."""

from typing import Literal, get_args

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.core.axes import Allowed, PerQuery, Queries, Scores, StepState, Weights
from regard.attention.core.errors import OptionError
from regard.attention.core.numerics import log_softmax, softmax
from regard.attention.core.options import check_positive
from regard.attention.core.records import record, replace, static
from regard.attention.kernels import Rule, View
from regard.attention.kernels.comparison import take
from regard.attention.masks import PairIndex
from regard.attention.selection.base import Selection

Gradient = Literal["reinforce", "gumbel"]


class Hard(Selection):
    """One key a query: sampled from softmax(e) in training, the argmax otherwise (Xu 2015, 4.1).

    A sample has no gradient. With "reinforce" the scores learn through `reading.log_probs`,
    weighted by a reward: see `selection.reinforce`. With "gumbel" their gradient is that of
    softmax((e + noise) / temperature) (Jang 2017, section 2.2, straight-through).

    Args:
        gradient: The estimator, "reinforce" or "gumbel".
        temperature: Of the straight-through softmax; the sample is from softmax(e) always.
    """

    def __init__(self, gradient: Gradient = "reinforce", temperature: float = 1.0) -> None:
        super().__init__()
        if gradient not in get_args(Gradient):
            raise OptionError(f'gradient is {gradient!r}. Choose "reinforce" or "gumbel".')
        self.gradient = gradient
        self.temperature = check_positive("temperature", temperature)

    def bind(self, queries: Queries, view: View, state: StepState) -> Rule:
        if not self.training:
            return HardRule(None, None, self.temperature)
        dtype = torch.promote_types(queries.dtype, torch.float32)
        shape = (*view.batch, view.pairs.height)
        if self.gradient == "reinforce":
            return HardRule(torch.rand(*shape, 1, dtype=dtype, device=queries.device), None, 1.0)
        uniform = torch.rand(*shape, view.pairs.keys, dtype=dtype, device=queries.device)
        tiny = torch.finfo(dtype).tiny
        noise = -(-uniform.clamp(min=tiny).log()).clamp(min=tiny).log()
        return HardRule(None, noise, self.temperature)

    def extra_repr(self) -> str:
        return f"gradient={self.gradient!r}, temperature={self.temperature}"


@record
class HardRule(Rule):
    """One key for each query, by random numbers of its own: computed again, it is the same."""

    uniform: PerQuery | None
    noise: Float[Tensor, "*#batch query key"] | None
    temperature: float = static()
    dropout: float = static(default=0.0)

    def weights(self, scores: Scores, allowed: Allowed | None, pairs: PairIndex) -> Weights:
        if self.noise is not None:
            return _straight_through(scores + self.noise, self.temperature, allowed)
        if self.uniform is None:
            return _one_hot(_argmax(scores, allowed), scores, allowed)
        # Inverse transform sampling; in float64, so that a number just below 1 is not rounded up
        # past the last key.
        summed = softmax(scores, allowed).detach().double().cumsum(-1)
        passed = summed <= self.uniform * summed[..., -1:]
        index = passed.sum(-1, keepdim=True).clamp(max=scores.shape[-1] - 1)
        return _one_hot(index, scores, allowed)

    def rows(self, index: Int[Tensor, " row"], rows: int) -> Rule:
        uniform, noise = take(self.uniform, index, rows), take(self.noise, index, rows)
        return replace(self, uniform=uniform, noise=noise)

    def log_probs(
        self, scores: Scores, allowed: Allowed | None, weights: Weights
    ) -> Float[Tensor, "*#batch query"]:
        return (log_softmax(scores, allowed) * weights.detach()).sum(-1)

    def entropy(self, scores: Scores, allowed: Allowed | None) -> Float[Tensor, "*#batch query"]:
        return -(softmax(scores, allowed) * log_softmax(scores, allowed)).sum(-1)


def _one_hot(index: Tensor, scores: Tensor, allowed: Tensor | None) -> Tensor:
    chosen = torch.zeros_like(scores).scatter(-1, index, 1.0)
    return chosen if allowed is None else chosen.masked_fill(~allowed, 0.0)


def _argmax(scores: Tensor, allowed: Tensor | None) -> Tensor:
    # Of the scores, not of their softmax, which rounds close ones to the same number.
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -torch.inf)
    return scores.argmax(-1, keepdim=True)


def _straight_through(scores: Tensor, temperature: float, allowed: Tensor | None) -> Tensor:
    soft = softmax(scores / temperature, allowed)
    hard = _one_hot(_argmax(scores, allowed), scores, allowed)
    return hard.detach() + (soft - soft.detach())  # the bracket is 0, but has softmax's gradient
