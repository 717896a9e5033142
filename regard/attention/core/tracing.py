"""May Python look at a value, to check it or to branch on it?"""

import torch
from torch import Tensor


def is_concrete(tensor: Tensor) -> bool:
    """Not in a graph that is compiled, not under vmap, and not where it would wait for a device."""
    if torch.compiler.is_compiling() or tensor.device.type != "cpu":
        return False
    return not in_functorch()


def in_functorch() -> bool:
    """Are we inside torch.func.vmap, grad or the like?"""
    # There is no public way to ask; torch.autograd.Function asks the same.
    return torch._C._are_functorch_transforms_active()
