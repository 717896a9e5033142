"""Settings of the whole process that make training on a CPU faster: heap and denormals."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch

from regard.native import loader

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # malloc.h
DEFAULT_THRESHOLD, MAX_THRESHOLD, MAX_MMAP_THRESHOLD = 128 * 1024, 2**31 - 1, 2**30


@contextmanager
def keep_heap() -> Iterator[bool]:
    """Keep freed memory for the next allocation; return it to the system at the end.

    glibc returns large blocks to the system as soon as they are freed, and the system zeroes them
    again page by page: for a training step on a CPU that is a good part of its time.

        with kernels.keep_heap():
            train()

    Yields True if the C library is glibc, which can do this. It is a setting of the whole process,
    whose size stays at its peak. Enter it once, around the loop.
    """
    glibc = _glibc()
    if glibc is None:
        yield False
        return
    _set_threshold(glibc, MAX_THRESHOLD)
    try:
        yield True
    finally:
        _set_threshold(glibc, DEFAULT_THRESHOLD)
        glibc.malloc_trim(0)


@contextmanager
def flush_denormals() -> Iterator[bool]:
    """Treat denormals, numbers between 0 and about 1e-38, as zero.

    Once a softmax is sure, the gradients of what it does not read are some 1e-40, and a processor
    takes a hundred times as long with such numbers.

        with kernels.flush_denormals():
            loss.backward()

    Yields True if the C extension is there, which does this. It holds for this thread and for those
    of torch's pool.
    """
    if loader.library() is None:
        yield False
        return
    flush, threads = loader.require().regard_flush_denormals, torch.get_num_threads()
    before = flush(1, threads)
    try:
        yield True
    finally:
        # All that were changed, though torch may use fewer by now: they work for others, too.
        flush(before, max(threads, torch.get_num_threads()))


def _set_threshold(glibc: ctypes.CDLL, threshold: int) -> None:
    # Blocks below the first come from the heap, which shrinks only past the second.
    glibc.mallopt(MMAP_THRESHOLD, min(threshold, MAX_MMAP_THRESHOLD))
    glibc.mallopt(TRIM_THRESHOLD, threshold)


@cache
def _glibc() -> ctypes.CDLL | None:
    try:
        library = ctypes.CDLL("libc.so.6")
    except OSError:
        return None
    return library if hasattr(library, "gnu_get_libc_version") else None
