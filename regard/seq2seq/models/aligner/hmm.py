"""A hidden Markov model over source words, summed exactly: forward and backward (Vogel 1996).

A target word is about one source word, or about none. How far a reader jumps from the word before
decides which comes next; a word about none leaves the reader where it was (Och & Ney 2003).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

SMALLEST = 1e-30
"""Below what a probability is taken for this, so that no sentence is impossible."""


@dataclass(frozen=True, slots=True)
class Transitions:
    """How a reader moves, as logarithms of probabilities."""

    first: Float[Tensor, "batch source"]
    """To where the first jump goes."""

    jumps: Float[Tensor, "batch place source"]
    """From each place to each."""

    empty: Float[Tensor, ""]
    """That a target word is about none."""

    present: Float[Tensor, ""]
    """That it is about one."""

    @staticmethod
    def of(
        widths: Float[Tensor, " width"],
        empty: Float[Tensor, ""],
        real: Bool[Tensor, "batch source"],
    ) -> "Transitions":
        """From a score for each width of a jump, −n … n, and one for emptiness.

        Wider jumps count as the widest. A sentence begins one place before its first word.
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
    """What is known of the alignment once the target is seen."""

    words: Float[Tensor, "batch target source"]
    nothing: Float[Tensor, "batch target"]
    log_prob: Float[Tensor, " batch"]
    """Of the target, whatever the alignment."""

    first: Float[Tensor, "batch source"]
    """How probable each first place was, if the first word is about one."""

    jumps: Float[Tensor, "batch place source"]
    """How often each jump is expected."""


@torch.no_grad()
def posterior(
    words: Float[Tensor, "batch target source"],
    nothing: Float[Tensor, "batch target"],
    chain: Transitions,
    lengths: Int[Tensor, " batch"],
) -> Posterior:
    """Forward and backward over the target.

    Args:
        words: Probability of each target word, given each source word; 0 for padding.
        nothing: The same, given that it is about none.
        chain: How the reader moves.
        lengths: How many target words there are.
    """
    empty, present = chain.empty.exp(), chain.present.exp()
    real = torch.arange(words.shape[1], device=words.device) < lengths[:, None]
    # After the end the reader stays where it is, with probability 1: nothing changes there.
    told = (words.clamp(min=SMALLEST) * real[..., None] * present).unbind(1)
    silent = torch.where(real, nothing.clamp(min=SMALLEST) * empty, 1.0).unbind(1)
    # A source of no words has nowhere to go.
    moves, start = chain.jumps.exp().nan_to_num(), chain.first.exp().nan_to_num()
    before = [_spread(start)]
    forward, scales = [], []
    for step, (own, none) in enumerate(zip(told, silent, strict=True)):
        reached = start if step == 0 else _moved(before[-1], moves)
        about, without = own * reached, none[:, None] * before[-1]
        scale = (about.sum(-1) + without.sum(-1)).clamp(min=SMALLEST)
        forward.append((about / scale[:, None], without / scale[:, None]))
        before.append(forward[-1][0] + forward[-1][1])
        scales.append(scale)
    return _backward(told, silent, moves, before, forward, scales, real)


def _backward(
    told: tuple[Tensor, ...],
    silent: tuple[Tensor, ...],
    moves: Tensor,
    before: list[Tensor],
    forward: list[tuple[Tensor, Tensor]],
    scales: list[Tensor],
    real: Tensor,
) -> Posterior:
    after = torch.ones_like(before[0])
    expected = torch.zeros_like(moves)
    words, nothing = [], []
    for step in reversed(range(len(told))):
        about, without = forward[step]
        words.append(about * after)
        nothing.append((without * after).sum(-1))
        if step:
            onward = told[step] * after / scales[step][:, None]
            expected += before[step][..., None] * onward[:, None]
            stay = silent[step][:, None] * after / scales[step][:, None]
            after = (moves @ onward[..., None])[..., 0] + stay
    found = torch.stack(words[::-1], 1)
    return Posterior(
        found,
        torch.stack(nothing[::-1], 1) * real,
        torch.stack(scales, 1).log().sum(-1),
        found[:, 0],
        expected * moves,
    )


def _moved(before: Tensor, moves: Tensor) -> Tensor:
    return (before[:, None] @ moves)[:, 0]


def _spread(start: Tensor) -> Tensor:
    """Where a reader may be before the first word, should that be about none: anywhere alike."""
    there = (start > 0).to(start.dtype)
    return there / there.sum(-1, keepdim=True).clamp(min=1.0)
