"""Linear layers in int8 for a CPU: a quarter of the memory, several times the speed.

Weights have a scale for each output, inputs one for each row, both taken by the greatest value; the
product of whole numbers is exact. So a row's answer is bitwise the same alone and in a batch, which
a scale for the whole batch (as in `quantize_dynamic`) would not give.
"""

import copy
from typing import TypeGuard

import torch
from jaxtyping import Float
from torch import Tensor, nn

from regard.native.eligibility import usable
from regard.native.int8 import dequantize, quantize_int8
from regard.seq2seq.decoding.errors import DecodingError

LEVELS = 127
SMALLEST = 1 << 17
"""Small layers are no faster for it: 32,000 weights come out even, a million at a third."""


class Int8Linear(nn.Module):
    """A linear layer with weights rounded to 255 levels; for use, not for training."""

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
        """The rounded weights as floats, for whoever multiplies by himself."""
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


def quantized(model: nn.Module, smallest: int = SMALLEST) -> nn.Module:
    """A copy of the model whose linear layers of `smallest` weights or more are in int8."""
    if why := refusals(model, smallest):
        raise DecodingError(f"this model cannot be decoded in int8: {'; '.join(why)}.")
    twin = copy.deepcopy(model).eval()
    if isinstance(twin, nn.Linear):
        return Int8Linear(twin)
    for parent in list(twin.modules()):
        for name, part in list(parent.named_children()):
            if _fits(part, smallest):
                setattr(parent, name, Int8Linear(part))
    return twin


def refusals(model: nn.Module, smallest: int = SMALLEST) -> list[str]:
    """Why it cannot be done; empty if it can."""
    why = []
    if not any(_fits(part, smallest) for part in model.modules()):
        why.append(f"it has no linear layer of {smallest} weights or more; use float32")
    devices = {parameter.device.type for parameter in model.parameters()} - {"cpu"}
    if devices:
        why.append(f"it is on {', '.join(sorted(devices))}, and int8 is for a CPU; move it there")
    if not _exact():
        why.append("this torch has no exact product of int8 matrices on a CPU; use float32")
    return why


def _fits(part: nn.Module, smallest: int) -> TypeGuard[nn.Linear]:
    # Exactly torch's own: a subclass may do more than a product.
    return type(part) is nn.Linear and part.weight.numel() >= smallest


def _scale(rows: Tensor) -> Tensor:
    """What a level is worth in each row; a row of zeros may have any."""
    tiny = torch.finfo(torch.float32).tiny
    return rows.abs().amax(-1, keepdim=True).div(LEVELS).clamp(min=tiny)


def _exact() -> bool:
    """Whether torch multiplies int8 on this machine, and does not overflow with great values."""
    left = torch.full((2, 64), LEVELS, dtype=torch.int8)
    try:
        product = torch._int_mm(left, -left.repeat(16, 1).t())
    except (AttributeError, RuntimeError):
        return False
    return bool((product == -64 * LEVELS**2).all())
