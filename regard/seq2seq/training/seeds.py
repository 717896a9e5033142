"""Every random draw is a function of (seed, purpose, counter), never of a long-lived generator.

So a resumed run draws the same numbers, and no generator's state is saved.
"""

import hashlib

import torch


def derive_seed(seed: int, purpose: str, counter: int = 0) -> int:
    """The seed of this draw alone, the same on every machine.

    >>> derive_seed(1, "step", 7) == derive_seed(1, "step", 7)
    True
    >>> derive_seed(1, "step", 7) == derive_seed(1, "order", 7)
    False
    """
    digest = hashlib.blake2b(f"{seed}/{purpose}/{counter}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1  # torch takes 63 bits on every platform


def seed_torch(seed: int, purpose: str, counter: int = 0) -> None:
    """Seed torch's generators for this purpose and counter.

    A model is built after `seed_torch(seed, "initialisation")`; the loop seeds before each update.
    """
    torch.manual_seed(derive_seed(seed, purpose, counter))
