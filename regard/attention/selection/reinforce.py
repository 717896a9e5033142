"""Learning from a draw: the gradient of an expected reward."""

from typing import Protocol, runtime_checkable

from torch import Tensor

from regard.attention.errors import ShapeError


@runtime_checkable
class Drawn(Protocol):
    """What was drawn, and from what: a `Reading` by `Hard`."""

    @property
    def log_probs(self) -> Tensor:
        """`(*batch, query)`."""

    @property
    def entropy(self) -> Tensor:
        """`(*batch, query)`."""


def reinforce(
    reading: Drawn,
    reward: Tensor,
    baseline: Tensor | None = None,
    *,
    decay: float = 0.9,
    entropy: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """A loss whose gradient is the expected reward's, and the next baseline (Xu 2015, eq. 11, 12).

    `loss = −mean over items of Σ over queries (reward − baseline) · log_probs`. The baseline
    lowers the variance and leaves the expectation: it is a moving mean of *earlier* rewards.

        loss, baseline = selection.reinforce(reading, reward, baseline)

    Args:
        reading: A reading by `selection.Hard` in training.
        reward: One number for each item, `(*batch,)`, or for each query, `(*batch, query)`.
        baseline: What the last call returned; none at first.
        decay: How much of the old baseline stays.
        entropy: How much the entropy of the choice is worth, so that it stays open.
    """
    log_probs = reading.log_probs
    reward = reward.detach()
    if reward.shape == log_probs.shape[:-1]:
        per_query = reward[..., None]
    elif reward.shape == log_probs.shape:
        per_query = reward
    else:
        raise ShapeError(
            f"reward has shape {tuple(reward.shape)} but the reading's log_probs "
            f"{tuple(log_probs.shape)}. Give one reward for each query, that shape, or for each "
            f"item, {tuple(log_probs.shape[:-1])}."
        )
    advantage = per_query if baseline is None else per_query - baseline
    gain = advantage * log_probs
    gain = gain + entropy * reading.entropy if entropy else gain
    mean = reward.mean()
    moved = mean if baseline is None else decay * baseline + (1 - decay) * mean
    return -gain.sum(-1).mean(), moved
