"""Take numbers too small to be normal as zero, for a while.

Once a softmax is sure, the gradients of what it does not read are some 1e-40. A processor of today
takes a hundred times as long with such numbers, and a matrix has few of them or very many.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from regard.attention.kernels import native


@contextmanager
def flushed() -> Iterator[bool]:
    """No number between 0 and about 1e-38 while this lasts. True if it can: with the C kernels.

        with kernels.flushed():
            loss.backward()

    It holds for this thread and for those that torch shares its work with.
    """
    if native.library() is None:
        yield False
        return
    before = native.flush(on=True)
    try:
        yield True
    finally:
        native.flush(on=before)
