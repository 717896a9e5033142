"""Linear layers for few rows at a time: their weights are held the other way round.

A product with `(out, in)` weights walks through all of them for each few rows; with `(in, out)`
it takes up to a third less time, so that to turn them once is soon worth it.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.weak import WeakTensorKeyDictionary

from regard.attention.kernels import transpose

State = tuple[int, int]
"""What changes when a weight does: its version, and where it lies."""

_transposed: WeakTensorKeyDictionary = WeakTensorKeyDictionary()


def transposed_weight(weight: Tensor) -> Tensor:
    """The weight as `(in, out)`, contiguous; kept for as long as the weight stays as it is."""
    state = weight._version, weight.data_ptr()
    known: tuple[State, Tensor] | None = _transposed.get(weight)
    if known is None or known[0] != state:
        known = state, transpose.transposed(weight)
        _transposed[weight] = known
    return known[1]


def apply_linear(inputs: Tensor, linear: nn.Module) -> Tensor:
    """What a linear layer makes of inputs, or what has taken its place (quantised, say)."""
    if type(linear) is nn.Linear:
        return plain_linear(inputs, linear.weight, linear.bias)
    made: Tensor = linear(inputs)
    return made


def plain_linear(inputs: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The same of a weight and a bias; the weight is turned where nothing is learned."""
    if not _has_transposed(inputs, weight):
        return functional.linear(inputs, weight, bias)
    rows, weight = inputs.reshape(-1, inputs.shape[-1]), transposed_weight(weight)
    found = torch.mm(rows, weight) if bias is None else torch.addmm(bias, rows, weight)
    return found.view(*inputs.shape[:-1], weight.shape[1])


def _has_transposed(inputs: Tensor, weight: Tensor) -> bool:
    return (
        not torch.is_grad_enabled()
        and inputs.is_cpu
        and weight.is_cpu
        and inputs.dtype == weight.dtype == torch.float32
        and not weight.is_inference()  # it has no version
        and not torch.is_autocast_enabled("cpu")
        and not torch.compiler.is_compiling()
    )
