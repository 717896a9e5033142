"""Compiled code: its loader, the one test of what it can compute with, and its bindings.

The lowest floor: it knows tensors and C, and no attention. Each binding module is named by what it
computes. A caller asks `eligibility.usable` first and has plain PyTorch for the other case, because
building the C extension is optional.
"""
