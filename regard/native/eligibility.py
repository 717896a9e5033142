"""Can compiled code compute with these tensors? The one place where that is asked."""

import torch
from torch import Tensor

from regard.native import loader


def usable(*tensors: Tensor, contiguous: bool = False) -> bool:
    """Is the C extension loaded, nothing traced, and is each tensor float32 on a CPU?

    Without tensors: can compiled code be called at all, here and now?

    Args:
        tensors: What C would read or write.
        contiguous: Must they be contiguous, too?
    """
    if torch.compiler.is_compiling() or in_functorch() or loader.library() is None:
        return False
    for tensor in tensors:
        if tensor.dtype != torch.float32 or not tensor.is_cpu:
            return False
        if contiguous and not tensor.is_contiguous():
            return False
    return True


def refusals(*tensors: Tensor, contiguous: bool = False) -> list[str]:
    """Why they are not usable; empty if they are."""
    if usable(*tensors, contiguous=contiguous):
        return []
    if is_traced():
        return ["inside torch.compile, vmap or another transform"]
    if loader.library() is None:
        return ["the C extension was not built"]
    return [f"it takes {'contiguous ' if contiguous else ''}float32 on a CPU"]


def is_traced() -> bool:
    """Are tensors symbols here: inside torch.compile, torch.func.vmap, grad or the like?"""
    return torch.compiler.is_compiling() or in_functorch()


def in_functorch() -> bool:
    """Are we inside torch.func.vmap, grad or the like?"""
    # There is no public way to ask; torch.autograd.Function asks the same.
    return torch._C._are_functorch_transforms_active()
