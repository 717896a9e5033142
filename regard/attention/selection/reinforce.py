"""REINFORCE: the gradient of an expected reward, for hard attention."""

from typing import Protocol, runtime_checkable

from torch import Tensor

from regard.attention.core.errors import DeviceError, DtypeError, ShapeError, shown
from regard.attention.core.options import check_number


@runtime_checkable
class HasDraws(Protocol):
    """A `Reading` by `Hard`: the log-probability of each sample, and the entropy."""

    @property
    def context(self) -> Tensor:
        """`(*batch, query, value_size)`."""

    @property
    def log_probs(self) -> Tensor:
        """`(*batch, query)`."""

    @property
    def entropy(self) -> Tensor:
        """`(*batch, query)`."""


def reinforce(
    reading: HasDraws,
    reward: Tensor,
    baseline: Tensor | None = None,
    *,
    decay: float = 0.9,
    entropy: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """A loss whose gradient is the expected reward's, and the next baseline (Xu 2015, section 4.1).

    `loss = −mean over items of Σ over queries, and heads, of (reward − baseline) · log_probs`
    (eq. 12). The baseline, a moving average of *earlier* rewards, lowers the variance and leaves
    the expectation.

        loss, baseline = selection.reinforce(reading, reward, baseline)

    Args:
        reading: A reading by `selection.Hard` in training.
        reward: One number for each item, `(*batch,)`, or for each sample: `log_probs.shape`.
        baseline: What the last call returned; None at first.
        decay: Of the moving average.
        entropy: Weight of an entropy bonus, which keeps the distribution from collapsing.
    """
    check_number("decay", decay, "a number from 0 to 1", lambda given: 0 <= given <= 1)
    check_number("entropy", entropy)
    if (log_probs := getattr(reading, "log_probs", None)) is None:
        raise DtypeError(
            f"{shown(reading)} is not a reading. "
            "Pass what the attention returned: reading = attention(queries, keys, values)."
        )
    _check_reward(reward, baseline, log_probs)
    reward = reward.detach()
    items = log_probs.shape[: max(0, reading.context.ndim - 2)]
    if reward.shape not in (items, log_probs.shape):
        raise ShapeError(
            f"reward has shape {tuple(reward.shape)} but the reading's log_probs "
            f"{tuple(log_probs.shape)}. Give one reward for each sample, that shape, or for each "
            f"item, {tuple(items)}."
        )
    each = reward.reshape([*reward.shape, *[1] * (log_probs.ndim - reward.ndim)])
    gain = (each if baseline is None else each - baseline) * log_probs
    gain = gain + entropy * reading.entropy if entropy else gain
    mean = reward.mean()
    moved = mean if baseline is None else decay * baseline + (1 - decay) * mean
    return -gain.sum() / max(1, items.numel()), moved


def _check_reward(reward: Tensor, baseline: Tensor | None, log_probs: Tensor) -> None:
    if not isinstance(reward, Tensor) or not reward.is_floating_point():
        given = reward.dtype if isinstance(reward, Tensor) else shown(reward)
        raise DtypeError(
            f"reward is {given}. Pass a tensor of floats, one for each item: reward.float()."
        )
    if reward.device != log_probs.device:
        raise DeviceError(
            f"reward is on {reward.device} but the reading on {log_probs.device}. "
            f"Move it: reward.to({str(log_probs.device)!r})."
        )
    if isinstance(baseline, Tensor) and baseline.ndim:
        raise ShapeError(
            f"baseline has shape {tuple(baseline.shape)}; it is one number, the mean of earlier "
            "rewards. Subtract another one yourself: reinforce(reading, reward - baseline)."
        )
