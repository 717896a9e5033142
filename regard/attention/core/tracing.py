"""May Python look at a value, to check it or to branch on it?"""

from torch import Tensor

from regard.native.eligibility import in_functorch, is_traced

__all__ = ["in_functorch", "is_concrete", "is_traced"]


def is_concrete(tensor: Tensor) -> bool:
    """Not in a graph that is compiled, not under vmap, and not where it would wait for a device."""
    return tensor.device.type == "cpu" and not is_traced()
