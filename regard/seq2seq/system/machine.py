"""The machine at hand."""

import os
from contextlib import suppress
from pathlib import Path

LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where a container says how much of the memory it may have."""


def memory_size() -> int:
    """How many bytes of memory there are, or a container may have of them."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in LIMITS:
        with suppress(OSError, ValueError):
            found.append(int(Path(path).read_text()))
    return min(found)
