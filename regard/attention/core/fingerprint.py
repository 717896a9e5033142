"""A hash of modules: their class, options and parameters."""

import hashlib

import torch
from torch import nn


def fingerprint(*modules: nn.Module, note: str = "") -> str:
    """Equal for modules that compute the same; changed by every update of a parameter."""
    digest = hashlib.sha256(note.encode())
    for module in modules:
        digest.update(repr(module).encode())
        for name, tensor in sorted(module.state_dict().items()):
            digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
            flat = tensor.detach().cpu().reshape(-1).contiguous()
            digest.update(flat.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def parameter_version(*modules: nn.Module) -> int:
    """How often the parameters were changed in place: it rises with each optimiser step."""
    if torch.compiler.is_compiling():
        return -1
    parameters = (parameter for module in modules for parameter in module.parameters())
    return sum(each._version for each in parameters if not each.is_inference())
