"""torch's fused attention with a second derivative."""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from regard.attention.core.numerics import softmax, upcast
from regard.attention.masks import Causal


def fused_attention(
    queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None, scale: float, causal: bool
) -> Tensor:
    """softmax(q kᵀ · scale + bias) v for tensors of four axes; a boolean bias is a mask."""
    wants_gradient = queries.requires_grad or keys.requires_grad or values.requires_grad
    if wants_gradient and torch.is_grad_enabled() and not torch.compiler.is_compiling():
        context: Tensor = DoubleBackwardSDPA.apply(queries, keys, values, bias, scale, causal)  # type: ignore[no-untyped-call]
        return context
    return _fused(queries, keys, values, bias, scale, causal)


class DoubleBackwardSDPA(torch.autograd.Function):
    """The fused kernel, whose own backward cannot be differentiated on a CPU.

    Backward is the fused one, or that of the plain formula if it needs a gradient itself
    (`create_graph=True`).
    """

    @staticmethod
    def forward(
        ctx: Any,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        bias: Tensor | None,
        scale: float,
        causal: bool,
    ) -> Tensor:
        ctx.save_for_backward(queries, keys, values)
        ctx.options = (bias, scale, causal)
        inputs = zip((queries, keys, values), ctx.needs_input_grad, strict=False)
        with torch.enable_grad():
            ctx.leaves = [tensor.detach().requires_grad_(needed) for tensor, needed in inputs]
            ctx.inner = _fused(*ctx.leaves, *ctx.options)
        return ctx.inner.detach()

    @staticmethod
    def backward(ctx: Any, *grad_context: Tensor) -> tuple[Tensor | None, ...]:
        needed = ctx.needs_input_grad[:3]
        create_graph = torch.is_grad_enabled()
        inputs = ctx.saved_tensors if create_graph else ctx.leaves
        context = naive_attention(*inputs, *ctx.options) if create_graph else ctx.inner
        sources = [tensor for tensor, each in zip(inputs, needed, strict=True) if each]
        grads = iter(
            torch.autograd.grad(
                context, sources, grad_context, retain_graph=True, create_graph=create_graph
            )
        )
        return (*(next(grads) if each else None for each in needed), None, None, None)


def _fused(
    queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None, scale: float, causal: bool
) -> Tensor:
    return functional.scaled_dot_product_attention(
        queries, keys, values, attn_mask=bias, is_causal=causal, scale=scale
    )


def naive_attention(
    queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor | None, scale: float, causal: bool
) -> Tensor:
    """The same in plain torch, with derivatives of any order."""
    allowed = bias if bias is not None and bias.dtype == torch.bool else None
    if causal:
        allowed = Causal().dense(queries.shape[-2], keys.shape[-2], queries.device)
    scores = (upcast(queries) * scale) @ upcast(keys).mT
    scores = scores if bias is None or allowed is not None else scores + bias
    return (softmax(scores, allowed) @ upcast(values)).to(values.dtype)
