"""Transformer layers in few calls: scaled dot products on a CPU, without a gradient.

What the quick ways of an encoder and of a decoder have in common: weights held as `(in, out)`, a
part's sum and the norm of the next part in one walk, and who can go these ways.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.attention.kernels import is_overridden, native
from regard.attention.multihead import MultiHead
from regard.attention.scores import ScaledDot
from regard.attention.selection import Softmax
from regard.seq2seq.nn.transformer import Residual
from regard.seq2seq.nn.transposed_linear import transposed_weight

Seen = Float[Tensor, "row size"]
Linear = tuple[Tensor, Tensor]
"""A weight, `(in, out)`, and its bias."""


class LayerParts:
    """How the parts of a layer end, and what lies between them.

    Args:
        lasts: The last linear layer of each part.
        residuals: What adds each part to what it was given.
        last: The norm that comes after the layer, if the layers normalise before their parts.
    """

    def __init__(
        self, lasts: Sequence[nn.Linear], residuals: Sequence[Residual], last: nn.LayerNorm
    ) -> None:
        self.lasts = [detached_linear(each) for each in lasts]
        self.first = residuals[0].first
        self.norms = [each.norm for each in residuals]
        if self.first:  # then a part is followed by the norm of the next
            self.norms = [*self.norms[1:], last]

    def after(self, part: int, seen: Seen, found: Float[Tensor, "row inner"]) -> tuple[Seen, Seen]:
        """What was seen with what a part found, and what the next part is given.

        Args:
            part: Which of them.
            seen: What the part was given; overwritten.
            found: What it found, before its last linear layer.
        """
        weight, bias = self.lasts[part]
        normal = native.add_layernorm(seen, found @ weight, bias, self.norms[part])
        return (seen if self.first else normal), normal


def runs_natively(embedding: nn.Embedding) -> bool:
    """Can a Transformer with these vectors be gone through so, here and now?"""
    weight = embedding.weight
    return (
        native.library() is not None
        and not is_overridden()
        and not torch.is_grad_enabled()
        and not embedding.training
        and not torch.compiler.is_compiling()
        and not torch.is_autocast_enabled("cpu")
        and weight.is_cpu
        and weight.dtype == torch.float32
    )


def is_plain_attention(
    readers: Sequence[MultiHead], forward_part: nn.Sequential, residuals: Sequence[Residual]
) -> bool:
    """Is a layer made of scaled dot products, softmax and linear layers that nobody replaced?"""
    linears = [forward_part[0], forward_part[-1]]
    for reader in readers:
        score, select = reader.attention.score, reader.attention.select
        linears += [reader.query, reader.key, reader.value, reader.out]
        if type(score) is not ScaledDot or score.scale is not None or score.factor is not None:
            return False
        if type(select) is not Softmax or select.temperature != 1.0:
            return False
        if reader.heads != reader.key_heads:
            return False
    norms = [each.norm for each in residuals]
    return all(_biased(linear) for linear in linears) and all(
        type(norm) is nn.LayerNorm for norm in norms
    )


def _biased(linear: nn.Module) -> bool:
    return (
        type(linear) is nn.Linear and linear.bias is not None and not linear.weight.is_inference()
    )


def next_norm(norms: Sequence[nn.LayerNorm], last: nn.Module) -> list[nn.LayerNorm]:
    """The norm after each layer: that of the next, or the last, if they normalise before."""
    return [*norms[1:], last if isinstance(last, nn.LayerNorm) else norms[0]]


def feed_forward_linears(forward_part: nn.Sequential) -> tuple[nn.Linear, nn.Linear]:
    """The first linear layer of the part that looks at each place alone, and the last."""
    into, *_, out = forward_part
    assert isinstance(into, nn.Linear)
    assert isinstance(out, nn.Linear)
    return into, out


def build_layers(inputs: Float[Tensor, "row in"], linear: Linear) -> Float[Tensor, "row out"]:
    """What a linear layer makes of rows."""
    return torch.addmm(linear[1], inputs, linear[0])


def detached_linear(linear: nn.Linear) -> Linear:
    """A linear layer."""
    return transposed_weight(linear.weight), linear.bias


def concat_linears(*linears: nn.Linear) -> Linear:
    """Several linear layers as one."""
    weights = [transposed_weight(linear.weight) for linear in linears]
    return torch.cat(weights, 1), torch.cat([linear.bias for linear in linears])
