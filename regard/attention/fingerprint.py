"""What a module is, in a hash: its kind, its options and its parameters."""

import hashlib

import torch
from torch import nn


def fingerprint(*modules: nn.Module) -> str:
    """The same for modules that compute the same; another as soon as a parameter moves."""
    digest = hashlib.sha256()
    for module in modules:
        digest.update(repr(module).encode())
        for name, tensor in sorted(module.state_dict().items()):
            digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode())
            digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
