"""Linear layers in int8 for a CPU: a quarter of the memory, several times the speed.

Weights have a scale for each output, inputs one for each row, both by the maximum; the product of
integers is exact. So a row's output is bit-identical alone and in a batch, which one scale for the
batch (as in `quantize_dynamic`) would not give.
"""

import copy
from typing import TypeGuard

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.native.eligibility import usable
from regard.native.int8 import dequantize, quantize_int8
from regard.seq2seq.decoding.errors import DecodingError

MAX_LEVEL = 127
MIN_WEIGHTS = 1 << 17
"""Smaller layers are no faster: 32,000 weights take as long, a million a third as long."""


class Int8Linear(nn.Module):
    """A linear layer with weights quantised to 255 levels; for inference only."""

    levels: Tensor
    scale: Tensor
    bias: Tensor | None

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        weight = linear.weight.detach().float()
        scale = _scale(weight)
        bias = None if linear.bias is None else linear.bias.detach().float().clone()
        self.register_buffer("levels", (weight / scale).round().to(torch.int8))
        self.register_buffer("scale", scale[:, 0])
        self.register_buffer("bias", bias)

    @property
    def weight(self) -> Float[Tensor, "out size"]:
        """The weights as floats, for code that multiplies with them itself."""
        return self.levels * self.scale[:, None]

    def forward(self, inputs: Float[Tensor, "*batch size"]) -> Float[Tensor, "*batch out"]:
        rows = inputs.reshape(-1, self.in_features).float()
        if not len(rows):
            return inputs.new_zeros(*inputs.shape[:-1], self.out_features)
        if usable(rows):
            levels, scales = quantize_int8(rows.contiguous())
            product = torch._int_mm(levels, self.levels.t())
            outputs = dequantize(product, scales, self.scale, self.bias)
        else:
            scale = _scale(rows)
            product = torch._int_mm((rows / scale).round_().to(torch.int8), self.levels.t())
            outputs = product.float().mul_(self.scale).mul_(scale)
            outputs = outputs if self.bias is None else outputs.add_(self.bias)
        return outputs.to(inputs.dtype).view(*inputs.shape[:-1], self.out_features)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}"


def quantized(model: nn.Module, min_weights: int = MIN_WEIGHTS) -> nn.Module:
    """A copy of the model whose linear layers of `min_weights` weights or more are in int8."""
    if reasons := refusals(model, min_weights):
        raise DecodingError(f"this model cannot be decoded in int8: {'; '.join(reasons)}.")
    quantized_model = copy.deepcopy(model).eval()
    if isinstance(quantized_model, nn.Linear):
        return Int8Linear(quantized_model)
    for parent in list(quantized_model.modules()):
        for name, child in list(parent.named_children()):
            if _is_quantizable(child, min_weights):
                setattr(parent, name, Int8Linear(child))
    return quantized_model


def refusals(model: nn.Module, min_weights: int = MIN_WEIGHTS) -> list[str]:
    """Why a model cannot be quantised; empty if it can."""
    reasons = []
    if not any(_is_quantizable(module, min_weights) for module in model.modules()):
        reasons.append(f"it has no linear layer of {min_weights} weights or more; use float32")
    devices = {parameter.device.type for parameter in model.parameters()} - {"cpu"}
    if devices:
        reasons.append(
            f"it is on {', '.join(sorted(devices))}, and int8 is for a CPU; move it there"
        )
    if not _is_exact():
        reasons.append("this torch has no exact product of int8 matrices on a CPU; use float32")
    return reasons


def _is_quantizable(module: nn.Module, min_weights: int) -> TypeGuard[nn.Linear]:
    # Exactly torch's own: a subclass may do more than a product.
    return type(module) is nn.Linear and module.weight.numel() >= min_weights


def _scale(rows: Tensor) -> Tensor:
    """The scale of each row; a row of zeros may have any."""
    tiny = torch.finfo(torch.float32).tiny
    return rows.abs().amax(-1, keepdim=True).div(MAX_LEVEL).clamp(min=tiny)


def _is_exact() -> bool:
    """Does torch multiply int8 matrices on this machine, without overflow?"""
    left = torch.full((2, 64), MAX_LEVEL, dtype=torch.int8)
    try:
        product = torch._int_mm(left, -left.repeat(16, 1).t())
    except (AttributeError, RuntimeError):
        return False
    return bool((product == -64 * MAX_LEVEL**2).all())
