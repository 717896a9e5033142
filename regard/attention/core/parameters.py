"""Parameters of scores and selections: two axes each, so that heads stack before them."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.attention.core.axes import Parameter
from regard.attention.core.deferred_grad import deferred_weight
from regard.attention.core.errors import DeviceError, DtypeError, OptionError, ShapeError
from regard.attention.core.numerics import matmul


def matrix(name: str, out_size: int, in_size: int) -> nn.Parameter:
    """A weight `(out, in)`, initialized so that outputs have the variance of inputs."""
    if not all(isinstance(size, int) and size > 0 for size in (out_size, in_size)):
        raise OptionError(
            f"{name} is {out_size} × {in_size}. Give sizes that are whole numbers, 1 or more."
        )
    bound = math.sqrt(3.0 / in_size)
    return nn.Parameter(torch.empty(out_size, in_size).uniform_(-bound, bound))


def scalar(value: float) -> nn.Parameter:
    """One number, `(1, 1)`."""
    return nn.Parameter(torch.full((1, 1), float(value)))


def project(tensor: Tensor, weight: Parameter) -> Tensor:
    """Multiply each row x of the tensor with the weight of its head: x Wᵀ."""
    check_dtype_device(tensor, weight)
    if weight.ndim == 2:
        deferred = deferred_weight(weight)
        if deferred is None or torch.is_autocast_enabled(tensor.device.type):
            return functional.linear(tensor, weight)
        return deferred.product(tensor)
    # One weight for each head: torch.matmul would copy it for each item of the batch.
    return matmul(tensor, _aligned(weight, tensor.ndim).mT)


def snapshot(parameter: Parameter, like: Tensor) -> Tensor:
    """A copy of the parameter with as many axes as `like`: a record must not see later updates."""
    _check_device(like, parameter)
    return _aligned(parameter.clone(), like.ndim)


def check_dtype_device(tensor: Tensor, weight: Tensor) -> None:
    """Raise unless the tensor can be multiplied with the weight."""
    _check_device(tensor, weight)
    if tensor.dtype != weight.dtype and not torch.is_autocast_enabled(tensor.device.type):
        raise DtypeError(
            f"the input is {tensor.dtype} but the parameters are {weight.dtype}. "
            f"Convert one: module.to({tensor.dtype}) or input.to({weight.dtype})."
        )


def check_size(name: str, what: str, given: int, needed: int) -> None:
    """Raise unless vectors have the size that a score or a selection was built for."""
    if given != needed:
        raise ShapeError(
            f"{name} was built for {what} of size {needed}; these have size {given}. "
            f"Build it with {given}, or project the {what} first."
        )


def _check_device(tensor: Tensor, weight: Tensor) -> None:
    if tensor.device != weight.device:
        raise DeviceError(
            f"the input is on {tensor.device} but the parameters are on {weight.device}. "
            f"Move one: module.to({str(tensor.device)!r}) or input.to({str(weight.device)!r})."
        )


def _aligned(weight: Tensor, rank: int) -> Tensor:
    return weight.reshape(*[1] * (rank - weight.ndim), *weight.shape)
