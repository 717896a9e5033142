"""One query an item, as a decoder asks at each step: scores, softmax and sum in one call.

For so little work, to call an operation takes longer than to compute it, and so does every check:
what was found out about a memory is kept in the view of it. Without a gradient only.
"""

from itertools import takewhile

import torch
from torch import Tensor

from regard.attention.axes import Context, Weights
from regard.attention.kernels import native, native_step
from regard.attention.kernels.additive import Additive
from regard.attention.kernels.comparison import Dot, Tanh
from regard.attention.kernels.request import Request
from regard.attention.kernels.rule import Soft
from regard.attention.looking import in_transform

KINDS = (Dot, Tanh)

KEYS = 1 << 12
"""Up to so many keys; a longer memory is worth torch's own threads and sums."""


class Step:
    """Dot products and additive scores of one query an item, in C where it was built."""

    def refusals(self, request: Request) -> list[str]:
        """Why this request cannot be answered here; empty if it can."""
        comparison, rule = request.comparison, request.rule
        if not isinstance(comparison, KINDS):
            return [f"scores by {type(comparison).__name__} are neither dot products nor additive"]
        known: Known | None = request.view.known.get(Step)
        if known is not None and known.serves(comparison, request):
            reasons = []
        else:
            reasons = _of_memory(comparison, request)
        if type(rule) is not Soft or rule.dropout:
            reasons.append("it selects by softmax, without dropout")
        if comparison.bias is not None:
            reasons.append("it takes no bias")
        if request.wants_gradient:
            reasons.append("it has no gradient")
        if not _plain(comparison.queries):
            reasons.append("it takes queries of contiguous float32 on a CPU")
        return reasons

    def prefers(self, request: Request) -> bool:
        """Always: it does in one call what takes others several."""
        return request.view.pairs.height == 1 and not torch.is_grad_enabled()

    def __call__(self, request: Request) -> tuple[Context, Weights | None]:
        comparison, rule = request.comparison, request.rule
        known: Known = request.view.known[Step]
        assert isinstance(rule, Soft)
        v, scale = None, 1 / rule.temperature
        if isinstance(comparison, Dot):
            queries = comparison.queries
            if comparison.factor is None:
                scale *= comparison.scale
            else:
                queries = comparison.scaled_queries()
        else:
            assert isinstance(comparison, Tanh)
            queries, v = comparison.queries, known.own_v(comparison)
        # Sizes one by one: torch takes twice as long to read them from a tuple.
        weights, context = queries.new_empty(*known.shape), queries.new_empty(*known.context_shape)
        if native_step.step(known.memory, queries, v, scale, weights, context, known.work):
            return context, weights
        return Additive()(request)


class Known:
    """A memory in the form that C reads, and what it was made of."""

    def __init__(self, comparison: Dot | Tanh, request: Request) -> None:
        values, allowed = request.values, request.view.allowed()
        self.like, self.values, self.mask = comparison, values, request.view.mask
        self.shape = comparison.shape
        self.context_shape = (*self.shape[:-1], values.shape[-1])
        self.one_v = isinstance(comparison, Tanh) and comparison.v.numel() == comparison.v.shape[-1]
        keys, reach = _as_compared(comparison, request), request.kept.get("reach")
        allowed = None if allowed is None else allowed.expand(self.shape).contiguous()
        self.held = keys, allowed, reach  # C is told where they are, and cannot hold them
        items = self.shape[:-2].numel()
        self.work = self.shape.numel() * (keys.shape[-1] + values.shape[-1])
        self.memory = native_step.StepMemory(
            keys=keys.data_ptr(),
            values=values.data_ptr(),
            reach=None if reach is None else reach.data_ptr(),
            allowed=None if allowed is None else allowed.data_ptr(),
            items=items,
            count=self.shape[-1],
            size=comparison.queries.shape[-1],
            width=keys.shape[-1],
            wide=values.shape[-1],
            keys_share=items // keys.shape[:-2].numel(),
            values_share=items // values.shape[:-2].numel(),
            v_share=items if self.one_v else 1,
        )

    def own_v(self, comparison: Tanh) -> Tensor:
        """The vector of additive scores: one for all, or one for each query."""
        v = comparison.v
        return v if self.one_v else v.expand_as(comparison.queries).contiguous()

    def serves(self, comparison: Dot | Tanh, request: Request) -> bool:
        """Is it the very memory that this was made for, and are the queries of the same shape?"""
        like = self.like
        return (
            comparison.keys is like.keys
            and request.values is self.values
            and request.view.mask is self.mask
            and comparison.queries.shape == like.queries.shape
            and type(comparison) is type(like)
        )


def _of_memory(comparison: Dot | Tanh, request: Request) -> list[str]:
    """Why it cannot read this memory; if it can, that is kept."""
    queries, values, reasons = comparison.queries, request.values, []
    if torch.compiler.is_compiling() or in_transform():
        return ["inside torch.compile, vmap or another transform"]
    if native.library() is None:
        return ["the C kernels were not built"]
    if isinstance(comparison, Tanh) and not _kept(comparison, request):
        return ["nothing was kept of these keys"]
    keys = _as_compared(comparison, request)
    if queries.shape[-2] != 1 or not 0 < values.shape[-2] <= KEYS or not queries.numel():
        reasons.append(f"it is for one query an item, and for 1 to {KEYS} keys")
    elif not (_shared(queries, keys) and _shared(queries, values)):
        reasons.append("neighbours may share a memory, and no other items of a batch")
    if not (_plain(keys) and _plain(values)):
        reasons.append("it takes keys and values of contiguous float32 on a CPU")
    if not reasons:
        request.view.known[Step] = Known(comparison, request)
    return reasons


def _kept(comparison: Tanh, request: Request) -> bool:
    """Are these keys those that were prepared? Those of a score that looks back are not."""
    kept = request.kept.get("e^2k")
    return kept is not None and kept.shape[:-1] == comparison.keys.shape[:-1]


def _as_compared(comparison: Dot | Tanh, request: Request) -> Tensor:
    """The keys in the form that scores are computed from."""
    return comparison.keys if isinstance(comparison, Dot) else request.kept["e^2k"]


def _plain(tensor: Tensor) -> bool:
    return tensor.dtype == torch.float32 and tensor.is_cpu and tensor.is_contiguous()


def _shared(queries: Tensor, own: Tensor) -> bool:
    """Has each item its own, or do neighbours share: the same batch, but for ones at its end?"""
    batch, given = queries.shape[:-2], own.shape[:-2]
    same = len([*takewhile(lambda pair: pair[0] == pair[1], zip(batch, given, strict=True))])
    return all(size == 1 for size in given[same:])
