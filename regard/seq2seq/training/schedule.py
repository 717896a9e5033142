"""Learning-rate schedules as pure functions of the step: warm-up, then decay."""

import math
from collections.abc import Callable

from regard.seq2seq.errors import ConfigError
from regard.seq2seq.training.options import TrainingOptions

Schedule = Callable[[int], float]
"""The learning rate of a step, counted from 1."""


def cosine(step: int, warmup: int, steps: int) -> float:
    """Half a cosine from 1 at the end of the warm-up to 0 just after the last step.

    >>> [round(cosine(step, 2, 5), 2) for step in (1, 2, 4, 6)]
    [0.5, 1.0, 0.5, 0.0]
    """
    if step < warmup:
        return step / warmup
    passed = (step - warmup) / max(1, steps + 1 - warmup)
    return 0.5 * (1 + math.cos(math.pi * min(1.0, passed)))


def inverse_root(step: int, warmup: int) -> float:
    """1 at the end of the warm-up, then as 1/√step (Vaswani 2017, eq. 3, scaled).

    >>> [inverse_root(step, 4) for step in (2, 4, 16)]
    [0.5, 1.0, 0.5]
    """
    top = max(1, warmup)
    return min(step / top, math.sqrt(top / step))


def constant(step: int, warmup: int) -> float:
    """1 from the end of the warm-up on."""
    return min(1.0, step / max(1, warmup))


def schedule(options: TrainingOptions) -> Schedule:
    """The schedule that the options name."""
    warmup, steps, rate = options.warmup, options.steps, options.rate
    match options.schedule:
        case "cosine":
            return lambda step: rate * cosine(step, warmup, steps)
        case "inverse_root":
            return lambda step: rate * inverse_root(step, warmup)
        case "constant":
            return lambda step: rate * constant(step, warmup)
    raise ConfigError(
        f"training.schedule is {options.schedule!r}. Give cosine, inverse_root or constant."
    )
