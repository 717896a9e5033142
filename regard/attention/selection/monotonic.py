"""Monotonic attention: each step attends at or after the last step's key."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.core.axes import (
    Allowed,
    PerKey,
    Prepared,
    Queries,
    Scalar,
    Scores,
    StepState,
    Weights,
)
from regard.attention.core.numerics import upcast
from regard.attention.core.options import check_number
from regard.attention.core.parameters import scalar, snapshot
from regard.attention.core.records import record, replace, static
from regard.attention.kernels import Request, Rule, View
from regard.attention.kernels.comparison import take
from regard.attention.masks import PairIndex
from regard.attention.selection.base import Selection
from regard.attention.state import Stateful


class Monotonic(Selection, Stateful):
    """Each step continues from the key where the last one stopped (Raffel 2017, section 2).

    At every key it stops with probability sigmoid(e + offset). In training the weights are the
    expectation over all stops (eq. 9 and 10, computed as 13 and 14); otherwise it stops at the
    first key with a probability above one half. Past the last key, nothing is read any more.

    Args:
        offset: Added to the scores; its initial value, learned. Below 0 it moves fast at first.
        noise: Standard deviation of Gaussian noise on the scores in training, which drives the
            probabilities to 0 and 1.
    """

    def __init__(self, offset: float = 0.0, noise: float = 1.0) -> None:
        super().__init__()
        self.offset = scalar(check_number("offset", offset))
        self.noise = check_number(
            "noise", noise, "a standard deviation of at least 0", lambda n: n >= 0
        )

    def bind(self, queries: Queries, view: View, state: StepState) -> Rule:
        offset, noise = upcast(snapshot(self.offset, queries)), None
        if self.training and self.noise:
            shape = (*view.batch, view.pairs.height, view.pairs.keys)
            noise = self.noise * torch.randn(*shape, dtype=offset.dtype, device=queries.device)
        return MonotonicRule(state["last"], offset, noise, expected=self.training)

    def start(self, prepared: Prepared, shape: tuple[int, ...]) -> StepState:
        last = upcast(prepared["keys"]).new_zeros(*shape[:-2], 1, shape[-1])
        last[..., :1] = 1.0  # at the first key
        return {"last": last}

    def advance(self, state: StepState, weights: Weights, request: Request) -> StepState:
        # A fully masked query has not moved: it keeps the last step's weights.
        return {"last": torch.where(request.view.visible_counts() > 0, weights, state["last"])}

    def extra_repr(self) -> str:
        return f"noise={self.noise}"


@record
class MonotonicRule(Rule):
    """Continue from the last step's weights, stopping at each key with its probability."""

    last: PerKey
    offset: Scalar
    noise: Float[Tensor, "*#batch query key"] | None
    expected: bool = static()
    dropout: float = static(default=0.0)

    def weights(self, scores: Scores, allowed: Allowed | None, pairs: PairIndex) -> Weights:
        scores = scores + self.offset
        scores = scores if self.noise is None else scores + self.noise
        stop = scores.sigmoid() if self.expected else (scores > 0).to(scores.dtype)
        proceed = (-scores).sigmoid() if self.expected else 1 - stop
        if allowed is not None:  # it never stops at a masked key
            stop, proceed = stop.masked_fill(~allowed, 0.0), proceed.masked_fill(~allowed, 1.0)
        return stop * _arrivals(proceed, self.last)

    def rows(self, index: Int[Tensor, " row"], rows: int) -> Rule:
        return replace(self, noise=take(self.noise, index, rows))


def _arrivals(proceed: Tensor, last: Tensor) -> Tensor:
    """Probability of arriving at each key: r_j = r_{j−1} · proceed_{j−1} + last_j.

    A parallel scan of log₂ S steps: no division, no difference of logarithms, no overflow.
    """
    rate = torch.nn.functional.pad(proceed[..., :-1], (1, 0))  # into key j from key j − 1
    total = last.expand_as(rate)
    reach = 1
    while reach < rate.shape[-1]:
        total = total + rate * torch.nn.functional.pad(total[..., :-reach], (reach, 0))
        rate = rate * torch.nn.functional.pad(rate[..., :-reach], (reach, 0))
        reach *= 2
    return total
