"""Kernels choose their own precision: autocast is off around them."""

from contextlib import AbstractContextManager, nullcontext

import torch


def autocast_disabled(device_type: str) -> AbstractContextManager[object]:
    """No autocast from here on; free where there was none."""
    if torch.is_autocast_enabled(device_type):
        return torch.autocast(device_type, enabled=False)
    return nullcontext()
