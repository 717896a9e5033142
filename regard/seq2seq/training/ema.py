"""Averaged weights: an exponential moving average (EMA) of the parameters over updates."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class EMA:
    """The exponential moving average of the trained parameters.

    The decay after update n is `min(decay, (1 + n) / (10 + n))`, so that the random initial
    weights have little influence.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self._live = {n: p for n, p in model.named_parameters() if p.requires_grad}
        self._average = {name: p.detach().clone() for name, p in self._live.items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Update the average after this step."""
        share = 1 - min(self.decay, (1 + step) / (10 + step))
        for name, parameter in self._live.items():
            self._average[name].lerp_(parameter, share)

    def tensors(self) -> Mapping[str, Tensor]:
        """The averaged weights by the names of their parameters."""
        return self._average

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Within, the model has the averaged weights; its own are restored bit-identically."""
        saved = {name: parameter.detach().clone() for name, parameter in self._live.items()}
        try:
            self._copy(self._average)
            yield
        finally:
            self._copy(saved)

    @torch.no_grad()
    def _copy(self, weights: Mapping[str, Tensor]) -> None:
        for name, parameter in self._live.items():
            parameter.copy_(weights[name])
