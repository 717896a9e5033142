"""What a read gives: the context at once, the weights when they are asked for."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention import kernels
from regard.attention.core.autocast import autocast_disabled
from regard.attention.core.errors import ChangedInputError
from regard.attention.core.records import cache_field, deep_tensors, record, static, version
from regard.attention.core.tracing import in_functorch
from regard.attention.core.validation import as_index
from regard.attention.kernels import Request
from regard.attention.state import State


@record
class Part:
    """One request that was answered, with its weights if they are known."""

    request: Request
    found: Float[Tensor, "*batch query key"] | None = None
    version: int = cache_field(default=-1)
    """How often the tensors that weights depend on had been changed in place; -1: nobody knows."""

    def weights(self) -> Float[Tensor, "*batch query key"]:
        """The weights, in float32 at least; found again if they were not kept."""
        if self.found is not None:
            return self.found
        self.check_unchanged()
        with autocast_disabled(self.request.values.device.type):
            weights = kernels.weights(self.request)
        # Weights found without a gradient must not serve someone who wants one.
        if torch.is_grad_enabled() or not self.request.comparison.requires_grad:
            self.found = weights
        return weights

    def check_unchanged(self) -> None:
        """Raise if what was read with has been changed in place since."""
        if self.version >= 0 and self.version != _version(self.request):
            raise ChangedInputError(
                "the queries, the keys, the bias or the mask of this reading were changed in place "
                "after it, so the weights that it used cannot be computed any more. Ask for "
                "reading.weights before the change, or read a copy: queries.clone()."
            )


def make_part(request: Request, weights: Tensor | None) -> Part:
    """The request with its weights, or with what is needed to compute them when asked for."""
    part = Part(request, weights)
    if weights is None and not (torch.compiler.is_compiling() or in_functorch()):
        part.version = _version(request)
    return part


def _version(request: Request) -> int:
    """How often the tensors that weights depend on were changed in place, all together."""
    found, mask = request.comparison.version, request.view.mask
    return found if mask is None else found + sum(map(version, deep_tensors(mask)))


@record
class Reading:
    """What was read: `context`, and on demand `weights`, `rows(…)`, `log_probs`, `entropy`.

    The weights are what the reading really used: the same mask, the same parameters (though an
    optimiser has moved on since), the same draw; before dropout. Queries, keys, bias or mask that
    were changed in place since are an error. `context, weights = reading`
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
            self.parts[0].check_unchanged()
            with autocast_disabled(self.context.device.type):
                weights = kernels.weights(self.parts[0].request.rows(rows))
        else:
            weights = _joined([part.weights() for part in self.parts], -2)[..., rows, :]
        return self._shown(weights)

    @property
    def log_probs(self) -> Float[Tensor, "..."]:
        """`(*batch, query)`: log of the chance, under `Hard`, of the key read; 0 for all others."""
        self._check_unchanged()
        with autocast_disabled(self.context.device.type):
            found = _joined([part.request.log_probs() for part in self.parts], -1)
        return self._shown(found[..., None]).squeeze(-1)

    @property
    def entropy(self) -> Float[Tensor, "..."]:
        """`(*batch, query)`: entropy, in nats, of what `Hard` chooses from; 0 for all others."""
        self._check_unchanged()
        with autocast_disabled(self.context.device.type):
            found = _joined([part.request.entropy() for part in self.parts], -1)
        return self._shown(found[..., None]).squeeze(-1)

    def __iter__(self) -> Iterator[Tensor]:
        yield self.context
        yield self.weights

    def _check_unchanged(self) -> None:
        for part in self.parts:
            part.check_unchanged()

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
