"""Can compiled code compute with these tensors? The one place where that is decided."""

from torch import Tensor, float32
from torch._C import _are_functorch_transforms_active as in_functorch
from torch.compiler import is_compiling

from regard.native import loader

__all__ = ["in_functorch", "is_traced", "refusals", "usable"]

# `in_functorch`: inside torch.func.vmap, grad or the like? There is no public function for it;
# torch.autograd.Function calls the same.


def usable(*tensors: Tensor, contiguous: bool = False) -> bool:
    """Is the C extension loaded, nothing traced, and is each tensor float32 on a CPU?

    Without tensors: can compiled code be called at all, here and now?

    Args:
        tensors: What C would read or write.
        contiguous: Must they be contiguous, too?
    """
    # Called for every step of a decoder: names are imported, because each dot costs 30 ns.
    if is_compiling() or in_functorch() or loader.library() is None:
        return False
    for tensor in tensors:
        if tensor.dtype != float32 or not tensor.is_cpu:
            return False
        if contiguous and not tensor.is_contiguous():
            return False
    return True


def refusals(*tensors: Tensor, contiguous: bool = False) -> list[str]:
    """Why they are not usable; empty if they are."""
    if is_traced():
        return ["inside torch.compile, vmap or another transform"]
    if loader.library() is None:
        return ["the C extension was not built"]
    if usable(*tensors, contiguous=contiguous):
        return []
    return [f"it takes {'contiguous ' if contiguous else ''}float32 on a CPU"]


def is_traced() -> bool:
    """Are tensors symbols here: inside torch.compile, torch.func.vmap, grad or the like?"""
    return is_compiling() or in_functorch()
