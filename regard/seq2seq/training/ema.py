"""Averaged weights: an exponential moving average of what the updates leave."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class EMA:
    """A second set of the trained parameters that follows the first slowly.

    After update n a share `min(decay, (1 + n) / (10 + n))` of the old average stays, so that the
    first weights, which were drawn, are soon forgotten.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self._live = {n: p for n, p in model.named_parameters() if p.requires_grad}
        self._kept = {name: p.detach().clone() for name, p in self._live.items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Take in the weights after the update with this number."""
        share = 1 - min(self.decay, (1 + step) / (10 + step))
        for name, parameter in self._live.items():
            self._kept[name].lerp_(parameter, share)

    def tensors(self) -> Mapping[str, Tensor]:
        """The averaged weights by the names of their parameters."""
        return self._kept

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Within, the model has the averaged weights; after it, to the bit, its own again."""
        own = {name: parameter.detach().clone() for name, parameter in self._live.items()}
        try:
            self._put(self._kept)
            yield
        finally:
            self._put(own)

    @torch.no_grad()
    def _put(self, weights: Mapping[str, Tensor]) -> None:
        for name, parameter in self._live.items():
            parameter.copy_(weights[name])
