"""Dot products through `torch.nn.functional.scaled_dot_product_attention`.

Softmax over a dot product is what every fast kernel of today computes. Dot, scaled dot, bilinear,
cosine and location scores are dot products already; a Gaussian is one with one more dimension.
"""

import math

import torch
from jaxtyping import Bool
from torch import Tensor
from torch.nn import functional

from regard.attention.core.axes import Allowed, Bias, Context, Weights
from regard.attention.core.numerics import broadcast_batch, upcast
from regard.attention.core.tracing import in_functorch, is_concrete
from regard.attention.kernels.comparison import DotComparison, GaussianComparison
from regard.attention.kernels.request import EMPTY, Request
from regard.attention.kernels.rule import SoftmaxRule
from regard.attention.kernels.sdpa_autograd import fused_attention
from regard.attention.masks import Causal

KINDS = (DotComparison, GaussianComparison)

MIN_PAIRS, MIN_TRAINING_PAIRS = 1 << 10, 1 << 15
"""From so many pairs an item on this is faster than plain matmul: without a gradient, and with
one."""

MAX_SCORE = 512.0
"""Up to this score the fused backward, which starts from the log of a sum, keeps its digits."""

MAX_SQUARED_DISTANCE, MIN_SIZE = 4.0, 32
"""A Gaussian is exact as a dot product if its points are within so many σ² of the keys' mean, in
at least so many dimensions: cancellation grows with the distance, and with fewer dimensions."""


class Sdpa:
    """Softmax of dot products by torch's fused attention, which stores no weights."""

    def refusals(self, request: Request) -> list[str]:
        """Why this request cannot be answered here; empty if it can."""
        comparison, reasons = request.comparison, []
        if not isinstance(comparison, KINDS):
            reasons.append(f"scores by {type(comparison).__name__} are not dot products")
        if not isinstance(request.rule, SoftmaxRule):
            reasons.append(f"selects by {type(request.rule).__name__}, not by softmax")
        elif request.rule.dropout:
            reasons.append("dropout needs the weights")
        if request.is_empty:
            reasons.append(EMPTY)
        if comparison.bias is not None and comparison.bias.requires_grad:
            reasons.append("the bias requires a gradient")
        if not torch.compiler.is_compiling() and in_functorch():
            reasons.append("inside vmap or another torch.func transform")
        if (
            isinstance(comparison, GaussianComparison)
            and not reasons
            and not _is_exact(comparison, request)
        ):
            reasons.append("this Gaussian would lose digits: few dimensions, or points far apart")
        if (
            isinstance(comparison, DotComparison)
            and not reasons
            and request.wants_gradient
            and _may_exceed_max_score(comparison)
        ):
            reasons.append(f"scores above {MAX_SCORE:g} would lose digits in the gradient")
        return reasons

    def prefers(self, request: Request) -> bool:
        """Is this faster than the reference? By measurement, on a CPU."""
        if isinstance(request.comparison, GaussianComparison):
            return True
        pairs = request.view.pairs
        count = pairs.height * pairs.width
        if request.wants_gradient:
            return count >= MIN_TRAINING_PAIRS
        return count >= MIN_PAIRS

    def __call__(self, request: Request) -> tuple[Context, Weights | None]:
        comparison = request.comparison
        dot = (
            _as_dot(comparison, request)
            if isinstance(comparison, GaussianComparison)
            else comparison
        )
        assert isinstance(dot, DotComparison)
        assert isinstance(request.rule, SoftmaxRule)
        shape, dtype = comparison.shape, _dtype(dot)
        square = shape[-1] == shape[-2]
        causal = square and dot.bias is None and isinstance(request.view.mask, Causal)
        allowed, empty = (None, None) if causal else _without_empty_rows(request)
        queries, scale = scaled(dot, request.rule.temperature)
        bias = _attn_mask(dot.bias, allowed, request.rule.temperature, dtype)
        keys, values = dot.keys, request.values
        if not queries.dtype == keys.dtype == values.dtype == dtype:
            queries, keys, values = (t.to(dtype) for t in (queries, keys, values))
        context = _read(queries, keys, values, bias, scale=scale, causal=causal)
        context = context if empty is None else context.masked_fill(empty, 0.0)
        return context if dtype == request.values.dtype else context.to(request.values.dtype), None


def scaled(dot: DotComparison, temperature: float) -> tuple[Tensor, float]:
    """Queries, and the scale for torch: its backward is exact for powers of 2 alone."""
    scale = dot.scale / temperature
    if dot.factor is None and math.frexp(scale)[0] == 0.5:
        return dot.queries, scale
    queries = dot.scaled_queries()
    return queries if temperature == 1.0 else queries / temperature, 1.0


def _dtype(dot: DotComparison) -> torch.dtype:
    """The dtype to compute in: on a CPU never less than float32.

    Half precision saves little there, loses digits, and kills the process on machines that
    advertise matrix units they do not have.
    """
    at_least = torch.float32 if dot.keys.device.type == "cpu" else dot.keys.dtype
    return torch.promote_types(dot.keys.dtype, at_least)


def _without_empty_rows(
    request: Request,
) -> tuple[Allowed | None, Bool[Tensor, "*#batch #query 1"] | None]:
    """The mask with empty rows opened, and which rows those are.

    A fully masked row is NaN in some of torch's kernels: it reads all keys, and is zeroed after.
    """
    allowed = request.view.allowed()
    if allowed is None:
        return None, None
    empty = request.view.visible_counts() == 0
    return allowed | empty, empty


def _attn_mask(
    bias: Bias | None, allowed: Allowed | None, temperature: float, dtype: torch.dtype
) -> Tensor | None:
    """Bias and mask as the one argument that torch takes for both."""
    if bias is None:
        return allowed
    bias = upcast(bias) / temperature
    if allowed is not None:
        bias = torch.where(allowed, bias, -torch.inf)
    return bias.to(dtype)


def _read(
    queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None, *,
    scale: float, causal: bool,
) -> Context:  # fmt: skip
    """Reshape the tensors to what torch is fast with, read, and reshape the context back.

    That is: exactly two batch axes, values as wide as the keys, nothing expanded.
    """
    if bias is not None:  # a mask by position alone has no batch axes
        bias = bias.reshape(*[1] * (queries.ndim - bias.ndim), *bias.shape)
    if queries.ndim == 4 and queries.shape[:2] == keys.shape[:2] and keys.shape == values.shape:
        return fused_attention(queries, keys, values, bias, scale, causal)
    value_size = values.shape[-1]
    size = max(value_size, queries.shape[-1])
    queries, keys, values = (_padded(t, size) for t in (queries, keys, values))
    shared = _shared_axes(queries, keys, values, bias) if not causal else []
    own = [axis for axis in range(queries.ndim - 2) if axis not in shared]
    # Shared axes become rows: the keys are not copied for each beam, or for each head of a group.
    rows = tuple(range(-2 - len(shared), -2))
    queries = queries.movedim(shared, rows)
    row_sizes = queries.shape[len(own) : -1]
    queries = queries.flatten(len(own), -2)
    keys, values = (
        t.movedim(shared, rows).reshape(*_pick(t, own), *t.shape[-2:]) for t in (keys, values)
    )
    if bias is not None:
        bias = bias.movedim(shared, rows).reshape(*_pick(bias, own), *bias.shape[-2:])
    batch = broadcast_batch(broadcast_batch(queries.shape[:-2], keys.shape[:-2]), values.shape[:-2])
    four = [
        _two_batch_axes(t.expand(*batch, *t.shape[-2:]), batch) for t in (queries, keys, values)
    ]
    bias = None if bias is None else _two_batch_axes(bias, batch)
    context = fused_attention(four[0], four[1], four[2], bias, scale, causal)
    context = context.reshape(*batch, *row_sizes, size).movedim(rows, shared)
    return context[..., :value_size]


def _shared_axes(queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None) -> list[int]:
    """Batch axes along which all queries read the same keys, under the same mask."""
    if bias is not None and bias.shape[-2] != 1:
        return []
    sizes = zip(queries.shape[:-2], keys.shape, values.shape, strict=False)
    shared = [axis for axis, (q, k, v) in enumerate(sizes) if k == v == 1 and q != 1]
    return [axis for axis in shared if bias is None or bias.shape[axis] == 1]


def _pick(tensor: Tensor, axes: list[int]) -> list[int]:
    return [tensor.shape[axis] for axis in axes]


def _two_batch_axes(tensor: Tensor, batch: tuple[int, ...]) -> Tensor:
    if len(batch) <= 2:
        return tensor.reshape(*[1] * (2 - len(batch)), *tensor.shape)
    if any(size != 1 for size in tensor.shape[:-3]):
        tensor = tensor.expand(*batch[:-1], *tensor.shape[-3:])
    return tensor.flatten(0, -4)


def _padded(tensor: Tensor, size: int) -> Tensor:
    missing = size - tensor.shape[-1]
    return functional.pad(tensor, (0, missing)) if missing else tensor


def _may_exceed_max_score(dot: DotComparison) -> bool:
    """By the norms of the vectors: may a score be so large that softmax is nearly one-hot?"""
    if not is_concrete(dot.keys):
        return False
    with torch.no_grad():
        factor = 1.0 if dot.factor is None else upcast(dot.factor).abs().amax()
        limit = MAX_SCORE / (factor * abs(dot.scale))
        # The largest element is usually enough to tell, and takes a quarter of the time.
        largest = [max(map(abs, t.aminmax())) for t in (dot.queries, dot.keys)]
        if bool(upcast(largest[0]) * upcast(largest[1]) * dot.keys.shape[-1] <= limit):
            return False
        norms = [upcast(t).norm(dim=-1).amax() for t in (dot.queries, dot.keys)]
        return bool(norms[0] * norms[1] > limit)


def _as_dot(comparison: GaussianComparison, request: Request) -> DotComparison:
    """The Gaussian as a dot product around the mean of the keys that some query may read."""
    allowed = request.view.allowed()
    return comparison.as_dot(None if allowed is None else allowed.any(-2)[..., None])


def _is_exact(comparison: GaussianComparison, request: Request) -> bool:
    """Is the dot product as exact as subtraction? No where the values cannot be inspected."""
    if not is_concrete(comparison.keys):
        return False
    if comparison.dtype in (torch.bfloat16, torch.float16):
        return True  # computed in float32, where plain code would be in half precision
    if comparison.keys.shape[-1] < MIN_SIZE:
        return False
    with torch.no_grad():
        dot = _as_dot(comparison, request)
        max_key = dot.keys[..., -1].amin() * -2  # the largest ‖k‖²
        max_query = dot.queries[..., :-1].square().sum(-1).amax()
        farthest = max_key.maximum(max_query) * comparison.precision.amax()
        return bool(farthest <= MAX_SQUARED_DISTANCE)
