"""The Triton kernels: imported when a tensor on a GPU first needs them, and never before."""

import importlib
import importlib.util
from types import ModuleType

from torch import Tensor

FOUND = importlib.util.find_spec("triton") is not None
"""Is Triton installed? Looked up, not imported: importing it takes longer than importing us."""


def serves(tensor: Tensor) -> bool:
    """Do the Triton kernels take this tensor?"""
    return FOUND and tensor.device.type == "cuda"


def library() -> ModuleType:
    """The module that launches the kernels."""
    return importlib.import_module("regard.attention.kernels.additive_triton")


def described() -> str:
    """What computes additive scores on a GPU."""
    if FOUND:
        return f"Triton {importlib.import_module('triton').__version__}"
    return "the reference: Triton was not found; pip install 'regard[gpu]'"
