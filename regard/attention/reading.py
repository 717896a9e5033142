"""What a read gives: the context at once, the weights when they are asked for."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention import kernels
from regard.attention.inputs import as_index
from regard.attention.kernels import Request
from regard.attention.kernels.autocast import off
from regard.attention.records import record, static
from regard.attention.state import State


@record
class Part:
    """One request that was answered, with its weights if they are known."""

    request: Request
    found: Float[Tensor, "*batch query key"] | None = None

    def weights(self) -> Float[Tensor, "*batch query key"]:
        """The weights, in float32 at least; found again if they were not kept."""
        if self.found is not None:
            return self.found
        with off(self.request.values.device.type):
            weights = kernels.weights(self.request)
        # Weights found without a gradient must not serve someone who wants one.
        if torch.is_grad_enabled() or not self.request.comparison.requires_grad:
            self.found = weights
        return weights


@record
class Reading:
    """What was read: `context`, and on demand `weights`, `rows(…)`, `log_probs`, `entropy`.

    The weights are what the reading really used: the same mask, the same parameters (though an
    optimiser has moved on since), the same draw; before dropout. `context, weights = reading`
    unpacks it. `state` goes into the next step's `read`.
    """

    context: Float[Tensor, "..."]
    parts: list[Part]
    state: State
    bare: bool = static(default=False)
    head_axes: int = static(default=0)

    @property
    def weights(self) -> Float[Tensor, "..."]:
        """`(*batch, query, key)`, with heads `(*batch, heads, query, key)`."""
        return self._shown(_joined([part.weights() for part in self.parts], -2))

    def rows(self, index: int | slice | Sequence[int] | Tensor) -> Float[Tensor, "..."]:
        """The weights of chosen queries only, at the cost of these alone."""
        total = sum(part.request.shape[-2] for part in self.parts)
        rows = _rows(index, total, self.context.device)
        if len(self.parts) == 1 and self.parts[0].found is None:
            with off(self.context.device.type):
                weights = kernels.weights(self.parts[0].request.rows(rows))
        else:
            weights = _joined([part.weights() for part in self.parts], -2)[..., rows, :]
        return self._shown(weights)

    @property
    def log_probs(self) -> Float[Tensor, "..."]:
        """`(*batch, query)`: log of the chance, under `Hard`, of the key read; 0 for all others."""
        with off(self.context.device.type):
            found = _joined([part.request.log_probs() for part in self.parts], -1)
        return self._shown(found[..., None]).squeeze(-1)

    @property
    def entropy(self) -> Float[Tensor, "..."]:
        """`(*batch, query)`: entropy, in nats, of what `Hard` chooses from; 0 for all others."""
        with off(self.context.device.type):
            found = _joined([part.request.entropy() for part in self.parts], -1)
        return self._shown(found[..., None]).squeeze(-1)

    def __iter__(self) -> Iterator[Tensor]:
        yield self.context
        yield self.weights

    def _shown(self, found: Tensor) -> Tensor:
        """As people see it: the context's dtype, one axis of heads, none for a bare query."""
        found = found.flatten(-4, -3) if self.head_axes == 2 else found
        found = found.squeeze(-2) if self.bare else found
        return found.to(self.context.dtype)


def _joined(parts: list[Tensor], axis: int) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts, axis)


def _rows(index: int | slice | Sequence[int] | Tensor, total: int, device: torch.device) -> Tensor:
    if isinstance(index, slice):
        return torch.arange(total, device=device)[index]
    return as_index("rows", [index] if isinstance(index, int) else index, total, device)
