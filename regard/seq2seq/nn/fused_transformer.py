"""Transformer layers in few calls: scaled dot-product attention on a CPU, without gradients.

What the fused encoder and the fused decoder step have in common: weights as `(in, out)`, a residual
sum and the layer norm after it in one pass over memory, and the conditions for all of it.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.kernels import is_overridden
from regard.attention.multihead import MultiHead
from regard.attention.scores import ScaledDot
from regard.attention.selection import Softmax
from regard.native.eligibility import usable
from regard.native.layer_norm import add_layernorm
from regard.seq2seq.nn.transformer import Residual
from regard.seq2seq.nn.transposed_linear import transposed_weight

Hidden = Float[Tensor, "row size"]
LinearWeights = tuple[Tensor, Tensor]
"""A weight, `(in, out)`, and its bias."""


class FusedSublayers:
    """The end of each sublayer: output projection, residual sum, and the layer norm after it.

    Args:
        projections: The last linear layer of each sublayer.
        residuals: What adds each sublayer's output to its input.
        following: The first norm after the layer; used if the layer is pre-norm.
    """

    def __init__(
        self,
        projections: Sequence[nn.Linear],
        residuals: Sequence[Residual],
        following: nn.LayerNorm,
    ) -> None:
        self.projections = [transposed_linear(linear) for linear in projections]
        self.pre_norm = residuals[0].pre_norm
        self.norms = [residual.norm for residual in residuals]
        if self.pre_norm:  # then a sum is followed by the norm of the next sublayer
            self.norms = [*self.norms[1:], following]

    def add_norm(
        self, sublayer: int, hidden: Hidden, outputs: Float[Tensor, "row inner"]
    ) -> tuple[Hidden, Hidden]:
        """The residual stream after a sublayer, and the input of the next one.

        Args:
            sublayer: Which of them.
            hidden: The residual stream before it; overwritten.
            outputs: The sublayer's, before its last linear layer.
        """
        weight, bias = self.projections[sublayer]
        normed = add_layernorm(hidden, outputs @ weight, bias, self.norms[sublayer])
        return (hidden if self.pre_norm else normed), normed


def runs_natively(training: bool, tensor: Tensor) -> bool:
    """Can the fused layers run on tensors like this one, here and now?"""
    return (
        usable(tensor)
        and not is_overridden()
        and not torch.is_grad_enabled()
        and not training
        and not torch.is_autocast_enabled("cpu")
    )


def is_plain_layer(
    attentions: Sequence[MultiHead], feed_forward: nn.Sequential, residuals: Sequence[Residual]
) -> bool:
    """Is a layer scaled dot-product, softmax and linear layers that nobody replaced?"""
    linears = [feed_forward[0], feed_forward[-1]]
    for multihead in attentions:
        score, select = multihead.attention.score, multihead.attention.select
        linears += [multihead.query, multihead.key, multihead.value, multihead.out]
        if type(score) is not ScaledDot or score.scale is not None or score.factor is not None:
            return False
        if type(select) is not Softmax or select.temperature != 1.0:
            return False
        if multihead.heads != multihead.key_heads:
            return False
    return all(_is_plain_linear(linear) for linear in linears) and all(
        type(residual.norm) is nn.LayerNorm for residual in residuals
    )


def _is_plain_linear(linear: nn.Module) -> bool:
    return (
        type(linear) is nn.Linear and linear.bias is not None and not linear.weight.is_inference()
    )


def following_norms(norms: Sequence[nn.LayerNorm], final: nn.Module) -> list[nn.LayerNorm]:
    """The norm after each layer, if layers are pre-norm: the next layer's first, or the final."""
    return [*norms[1:], final if isinstance(final, nn.LayerNorm) else norms[0]]


def feed_forward_linears(feed_forward: nn.Sequential) -> tuple[nn.Linear, nn.Linear]:
    """The two linear layers of a feed-forward network."""
    into, *_, out = feed_forward
    assert isinstance(into, nn.Linear)
    assert isinstance(out, nn.Linear)
    return into, out


def affine(inputs: Float[Tensor, "row in"], linear: LinearWeights) -> Float[Tensor, "row out"]:
    """Rows times a weight, plus a bias."""
    return torch.addmm(linear[1], inputs, linear[0])


def transposed_linear(linear: nn.Linear) -> LinearWeights:
    """A linear layer's weight, transposed, and its bias."""
    return transposed_weight(linear.weight), linear.bias


def concat_linears(*linears: nn.Linear) -> LinearWeights:
    """Several linear layers of the same input as one."""
    weights = [transposed_weight(linear.weight) for linear in linears]
    return torch.cat(weights, 1), torch.cat([linear.bias for linear in linears])
