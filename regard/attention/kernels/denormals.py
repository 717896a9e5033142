"""Take numbers too small to be normal as zero, for a while.

Once a softmax is sure, the gradients of what it does not read are some 1e-40. A processor of today
takes a hundred times as long with such numbers, and a matrix has few of them or very many.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from regard.attention.kernels import native


@contextmanager
def flush_denormals() -> Iterator[bool]:
    """No number between 0 and about 1e-38 while this lasts. True if it can: with the C kernels.

        with kernels.flush_denormals():
            loss.backward()

    It holds for this thread and for those that torch shares its work with.
    """
    if native.library() is None:
        yield False
        return
    threads = torch.get_num_threads()
    before = native.flush(True, threads)
    try:
        yield True
    finally:
        # All that were changed, though torch may use fewer by now: they work for others, too.
        native.flush(before, max(threads, torch.get_num_threads()))
