"""A hidden Markov model over source positions, by the forward–backward algorithm (Vogel 1996).

A target word is aligned to one source word, or to NULL. Transition probabilities depend on the
width of the jump from the last aligned position; NULL leaves it where it was (Och & Ney 2003).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

SMALLEST = 1e-30
"""Probabilities are clamped to this, so that no sentence is impossible."""


@dataclass(frozen=True, slots=True)
class Transitions:
    """Transition log-probabilities."""

    first: Float[Tensor, "batch source"]
    """From the start of the sentence."""

    jumps: Float[Tensor, "batch place source"]
    """From each position to each."""

    empty: Float[Tensor, ""]
    """That a target word is aligned to NULL."""

    present: Float[Tensor, ""]
    """That it is not."""

    @staticmethod
    def of(
        widths: Float[Tensor, " width"],
        empty: Float[Tensor, ""],
        real: Bool[Tensor, "batch source"],
    ) -> "Transitions":
        """From a logit for each jump width, −n … n, and one for NULL.

        Wider jumps count as the widest. The start is one position before the first word.
        """
        places = torch.arange(-1, real.shape[1], device=real.device)
        most = (len(widths) - 1) // 2
        steps = (places[1:] - places[:, None]).clamp(-most, most) + most
        scores = widths[steps].masked_fill(~real[:, None], -torch.inf)
        logs = scores.log_softmax(-1)
        return Transitions(
            logs[:, 0], logs[:, 1:],
            torch.nn.functional.logsigmoid(empty), torch.nn.functional.logsigmoid(-empty),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Posterior:
    """The posterior of the alignment given both sides, with expected counts."""

    words: Float[Tensor, "batch target source"]
    null: Float[Tensor, "batch target"]
    log_prob: Float[Tensor, " batch"]
    """Of the target, with the alignment marginalised out."""

    first: Float[Tensor, "batch source"]
    """Posterior of the first position, if the first word is not aligned to NULL."""

    jumps: Float[Tensor, "batch place source"]
    """Expected count of each transition."""


@torch.no_grad()
def posterior(
    words: Float[Tensor, "batch target source"],
    null: Float[Tensor, "batch target"],
    transitions: Transitions,
    lengths: Int[Tensor, " batch"],
) -> Posterior:
    """The forward–backward algorithm over the target, with scaling.

    Args:
        words: Probability of each target word, given each source word; 0 for padding.
        null: The same, given NULL.
        transitions: Transition log-probabilities.
        lengths: Number of target words.
    """
    empty, present = transitions.empty.exp(), transitions.present.exp()
    real = torch.arange(words.shape[1], device=words.device) < lengths[:, None]
    # Padding positions emit NULL with probability 1: they change nothing.
    emissions = (words.clamp(min=SMALLEST) * real[..., None] * present).unbind(1)
    nulls = torch.where(real, null.clamp(min=SMALLEST) * empty, 1.0).unbind(1)
    # An empty source has only masked transitions, whose softmax is NaN.
    moves, start = transitions.jumps.exp().nan_to_num(), transitions.first.exp().nan_to_num()
    before = [_uniform(start)]
    forward, scales = [], []
    for step, (emission, none) in enumerate(zip(emissions, nulls, strict=True)):
        reached = start if step == 0 else (before[-1][:, None] @ moves)[:, 0]
        aligned, unaligned = emission * reached, none[:, None] * before[-1]
        scale = (aligned.sum(-1) + unaligned.sum(-1)).clamp(min=SMALLEST)
        forward.append((aligned / scale[:, None], unaligned / scale[:, None]))
        before.append(forward[-1][0] + forward[-1][1])
        scales.append(scale)
    return _backward(emissions, nulls, moves, before, forward, scales, real)


def _backward(
    emissions: tuple[Tensor, ...],
    nulls: tuple[Tensor, ...],
    moves: Tensor,
    before: list[Tensor],
    forward: list[tuple[Tensor, Tensor]],
    scales: list[Tensor],
    real: Tensor,
) -> Posterior:
    after = torch.ones_like(before[0])
    expected = torch.zeros_like(moves)
    words, null = [], []
    for step in reversed(range(len(emissions))):
        aligned, unaligned = forward[step]
        words.append(aligned * after)
        null.append((unaligned * after).sum(-1))
        if step:
            onward = emissions[step] * after / scales[step][:, None]
            expected += before[step][..., None] * onward[:, None]
            stay = nulls[step][:, None] * after / scales[step][:, None]
            after = (moves @ onward[..., None])[..., 0] + stay
    found = torch.stack(words[::-1], 1)
    return Posterior(
        found,
        torch.stack(null[::-1], 1) * real,
        torch.stack(scales, 1).log().sum(-1),
        found[:, 0],
        expected * moves,
    )


def _uniform(start: Tensor) -> Tensor:
    """The position before the first aligned word, if NULL comes first: uniform over the source."""
    reachable = (start > 0).to(start.dtype)
    return reachable / reachable.sum(-1, keepdim=True).clamp(min=1.0)
