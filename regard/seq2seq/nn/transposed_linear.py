"""Linear layers for few rows at a time, with transposed weights.

A product with an `(out, in)` weight reads all of it for every few rows; with `(in, out)` it takes
up to a third less time, so that one transposition soon pays.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.weak import WeakTensorKeyDictionary

from regard.native.transpose import transposed

Version = tuple[int, int]
"""What changes when a weight does: its version counter, and its address."""

_cache: WeakTensorKeyDictionary = WeakTensorKeyDictionary()


def transposed_weight(weight: Tensor) -> Tensor:
    """The weight as `(in, out)`, contiguous; cached until the weight changes."""
    version = weight._version, weight.data_ptr()
    cached: tuple[Version, Tensor] | None = _cache.get(weight)
    if cached is None or cached[0] != version:
        cached = version, transposed(weight)
        _cache[weight] = cached
    return cached[1]


def apply_linear(inputs: Tensor, linear: nn.Module) -> Tensor:
    """A linear layer's output, or that of its replacement (quantised, say)."""
    if type(linear) is nn.Linear:
        return plain_linear(inputs, linear.weight, linear.bias)
    outputs: Tensor = linear(inputs)
    return outputs


def plain_linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`functional.linear`, by the transposed weight where nothing is trained."""
    if not _use_transposed(inputs, weight):
        return functional.linear(inputs, weight, bias)
    rows, weight = inputs.reshape(-1, inputs.shape[-1]), transposed_weight(weight)
    outputs = torch.mm(rows, weight) if bias is None else torch.addmm(bias, rows, weight)
    return outputs.view(*inputs.shape[:-1], weight.shape[1])


def _use_transposed(inputs: Tensor, weight: Tensor) -> bool:
    return (
        not torch.is_grad_enabled()
        and inputs.is_cpu
        and weight.is_cpu
        and inputs.dtype == weight.dtype == torch.float32
        and not weight.is_inference()  # it has no version
        and not torch.is_autocast_enabled("cpu")
        and not torch.compiler.is_compiling()
    )
