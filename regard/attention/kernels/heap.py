"""Keep the heap: memory that training frees in one step is what it needs in the next.

glibc hands large blocks back to the system as soon as they are freed, and the system zeroes them,
page by page, when they are asked for again. For a training step on a CPU that is a good part of its
time.
"""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # malloc.h
DEFAULT, MOST = 128 * 1024, 2**31 - 1


@contextmanager
def keep_heap() -> Iterator[bool]:
    """Keep freed memory while this lasts; then hand it back. True if the C library can: glibc's.

        with kernels.keep_heap():
            train()

    It is a setting of the whole process: memory that anyone frees stays with it, so that its size
    is that of its largest moment. Enter it once, around the loop.
    """
    library = _glibc()
    if library is None:
        yield False
        return
    _set(library, MOST)
    try:
        yield True
    finally:
        _set(library, DEFAULT)
        library.malloc_trim(0)


def _set(library: ctypes.CDLL, threshold: int) -> None:
    # Blocks below the first come from the heap, which shrinks only past the second.
    library.mallopt(MMAP_THRESHOLD, min(threshold, 2**30))
    library.mallopt(TRIM_THRESHOLD, threshold)


@cache
def _glibc() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL("libc.so.6")
    except OSError:
        return None
    return library if hasattr(library, "gnu_get_libc_version") else None
