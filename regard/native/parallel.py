"""How many threads a call of compiled code gets."""

import torch

MIN_WORK = 1 << 18
"""How many elements are worth a thread of their own."""


def threads(work: int) -> int:
    """As many as torch uses; one where the work would be done before a thread has started."""
    return 1 if work < 2 * MIN_WORK else min(torch.get_num_threads(), work // MIN_WORK)
