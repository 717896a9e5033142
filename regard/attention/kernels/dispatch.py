"""Dispatch: the first kernel that takes a request and is the fastest for it, or the reference."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from regard.attention.core.axes import Context, Prepared, Weights
from regard.attention.core.errors import KernelError, shown
from regard.attention.kernels import triton_loader
from regard.attention.kernels.additive import AdditiveKernel
from regard.attention.kernels.comparison import Comparison
from regard.attention.kernels.deferred_single_query import DeferredSingleQuery
from regard.attention.kernels.distance_softmax import DistanceSoftmax
from regard.attention.kernels.dot_softmax import DotSoftmax
from regard.attention.kernels.reference import Reference
from regard.attention.kernels.request import Request
from regard.attention.kernels.sdpa import Sdpa
from regard.attention.kernels.single_query import SingleQuery
from regard.attention.kernels.windowed import Windowed
from regard.native import loader
from regard.native.loader import LEVELS


@runtime_checkable
class Kernel(Protocol):
    """A way to answer a request."""

    def refusals(self, request: Request) -> list[str]:
        """Why it does not take this request; empty if it does."""

    def prefers(self, request: Request) -> bool:
        """Is it faster than the kernels after it in `KERNELS`?"""

    def __call__(self, request: Request) -> tuple[Context, Weights | None]:
        """The context, and the weights if they were computed on the way."""


@runtime_checkable
class CachesKeys(Protocol):
    """A kernel that caches something of each key in the memory."""

    def cache_keys(self, kind: type[Comparison], prepared: Prepared) -> Mapping[str, Tensor]:
        """Tensors `(*batch, key, …)` by name, which `request.cached` will have."""


@runtime_checkable
class CanSkipCache(Protocol):
    """A kernel that can do without its cache, where many queries read keys once."""

    def can_skip_cache(self, kind: type[Comparison], prepared: Prepared) -> bool:
        """Can it for these keys?"""


@runtime_checkable
class ComputesWeights(Protocol):
    """A kernel that computes the weights of a request faster than the reference."""

    def weights(self, request: Request) -> Weights:
        """The weights, before dropout."""


KERNELS: tuple[Kernel, ...] = (
    SingleQuery(), DeferredSingleQuery(), Windowed(), AdditiveKernel(), DotSoftmax(),
    DistanceSoftmax(), Sdpa(), Reference(),
)  # fmt: skip
"""In the order in which they are tried."""


def _caching(kernels: tuple[Kernel, ...]) -> tuple[tuple[CachesKeys, CanSkipCache | None], ...]:
    """Those that cache something of the keys, each again if it can do without that."""
    caching = (kernel for kernel in kernels if isinstance(kernel, CachesKeys))
    return tuple(
        (kernel, kernel if isinstance(kernel, CanSkipCache) else None) for kernel in caching
    )


class _Override(threading.local):
    """The kernels given to `using`, in this thread; torch.compile cannot trace a ContextVar."""

    def __init__(self) -> None:
        self.only: tuple[Kernel, ...] = ()
        # Computed once: isinstance of a protocol takes longer than a short read.
        self.caching = _caching(KERNELS)


_override = _Override()


@contextmanager
def using(*kernels: Kernel) -> Iterator[None]:
    """Use these kernels only; a refusal is then an error with its reasons.

    >>> import torch
    >>> from regard import attend, kernels
    >>> with kernels.using(kernels.Reference()):
    ...     attend(torch.zeros(3, 4), torch.zeros(5, 4), torch.ones(5, 2)).context.shape
    torch.Size([3, 2])
    """
    for kernel in kernels or (None,):
        if isinstance(kernel, type) or not isinstance(kernel, Kernel):
            raise KernelError(
                f"using(…) was given {shown(kernel) if kernels else 'nothing'}. "
                "Pass at least one kernel, each an object: using(kernels.Reference())."
            )
    before = _override.only, _override.caching
    _override.only, _override.caching = kernels, _caching(kernels)
    try:
        yield
    finally:
        _override.only, _override.caching = before


def is_overridden() -> bool:
    """Are we inside `using`?"""
    return bool(_override.only)


def available() -> dict[str, str]:
    """The kernels by name, and how each computes on this machine.

    >>> from regard import kernels
    >>> sorted(kernels.available())
    ['additive', 'deferred_single_query', 'distance_softmax', 'dot_softmax', 'reference', 'sdpa',
     'single_query', 'windowed']
    """
    built, rejected = loader.library() is not None, loader.rejections()
    missing = "; ".join(rejected) or "the C extension was not built; reinstall with a C compiler"
    served = "; ".join([f"C, {LEVELS[loader.level()]}", *rejected])
    additive = served if built else f"PyTorch, in chunks: {missing}"
    c_only = served if built else f"unavailable: {missing}"
    if torch.cuda.is_available():
        additive += f"; on a GPU, {triton_loader.described()}"
    return {
        "single_query": c_only,
        "deferred_single_query": c_only,
        "additive": additive,
        "windowed": "PyTorch, the keys of each window gathered",
        "dot_softmax": c_only,
        "distance_softmax": c_only,
        "sdpa": "torch's fused attention",
        "reference": "PyTorch, every pair",
    }


def dispatch(request: Request) -> tuple[Context, Weights | None]:
    """Read with the first kernel that prefers the request and takes it.

    Inside `using`: the first of its kernels that takes it.
    """
    only = _override.only
    reasons = []
    for kernel in only or KERNELS:
        if not only and not kernel.prefers(request):
            continue
        refusals = kernel.refusals(request)
        if not refusals:
            return kernel(request)
        reasons.append(f"{type(kernel).__name__}: {'; '.join(refusals)}")
    raise KernelError(
        "no kernel allowed here takes this read. " + ". ".join(reasons) + ". "
        "Add kernels.Reference() to using(…): it takes everything."
    )


def weights(request: Request) -> Weights:
    """The weights of a request, by the fastest kernel that computes them."""
    only = _override.only
    for kernel in only or KERNELS:
        eligible = bool(only) or kernel.prefers(request)
        if eligible and isinstance(kernel, ComputesWeights) and not kernel.refusals(request):
            return kernel.weights(request)
    return request.weights()


def cache_keys(kind: type[Comparison], prepared: Prepared, *, once: bool = False) -> Prepared:
    """What the kernels cache of these keys; less if many queries read them `once`, together."""
    cached: dict[str, Tensor] = {}
    once = once and not torch.compiler.is_compiling()
    for kernel, skipping in _override.caching:
        if not (once and skipping is not None and skipping.can_skip_cache(kind, prepared)):
            cached.update(kernel.cache_keys(kind, prepared))
    return cached
