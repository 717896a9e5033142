"""What a module is, in a hash: its kind, its options and its parameters."""

import hashlib

import torch
from torch import nn


def fingerprint(*modules: nn.Module, note: str = "") -> str:
    """The same for modules that compute the same; another as soon as a parameter moves."""
    digest = hashlib.sha256(note.encode())
    for module in modules:
        digest.update(repr(module).encode())
        for name, tensor in sorted(module.state_dict().items()):
            digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
            flat = tensor.detach().cpu().reshape(-1).contiguous()
            digest.update(flat.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def parameter_version(*modules: nn.Module) -> int:
    """How often the parameters have been changed in place: more after each optimiser's step."""
    if torch.compiler.is_compiling():
        return -1
    learned = (parameter for module in modules for parameter in module.parameters())
    return sum(parameter._version for parameter in learned if not parameter.is_inference())
