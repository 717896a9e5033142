"""Where two files of a different number of lines part, told by the lengths of their lines."""

import numpy as np


def find_misaligned_line(sources: np.ndarray, targets: np.ndarray) -> int:
    """The number of the first line after which the two no longer belong together.

    One file has d lines more. If they stand at k, then lines before k belong together as they are,
    and those after it if the longer file is moved by d. Lines that belong together have lengths of
    about the same ratio: the k that explains the lengths best is found among all of them at once.

    >>> find_misaligned_line(np.array([9, 2, 7, 30, 4]), np.array([9, 2, 99, 7, 30, 4]))
    2
    """
    short, long = sorted((sources, targets), key=len)
    if not len(short):
        return 0
    extra = len(long) - len(short)
    short, long = np.log1p(short), np.log1p(long)
    usual = np.median(long) - np.median(short)
    still = (long[: len(short)] - short - usual) ** 2
    moved = (long[extra:] - short - usual) ** 2
    before = np.concatenate([[0.0], np.cumsum(still)])
    after = np.concatenate([np.cumsum(moved[::-1])[::-1], [0.0]])
    return int(np.argmin(before + after))
