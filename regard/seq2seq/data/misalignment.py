"""Where two files of different numbers of lines become misaligned, estimated from line lengths."""

import numpy as np


def find_misaligned_line(sources: np.ndarray, targets: np.ndarray) -> int:
    """The number of the first misaligned line.

    One file has d lines more. If they are at k, lines before k are parallel as they are, and lines
    after k are parallel when the longer file is shifted by d. Parallel lines have lengths of about
    the same ratio: the k of the least squared error over all lines is the answer.

    >>> find_misaligned_line(np.array([9, 2, 7, 30, 4]), np.array([9, 2, 99, 7, 30, 4]))
    2
    """
    short, long = sorted((sources, targets), key=len)
    if not len(short):
        return 0
    extra = len(long) - len(short)
    short, long = np.log1p(short), np.log1p(long)
    log_ratio = np.median(long) - np.median(short)
    unshifted = (long[: len(short)] - short - log_ratio) ** 2
    shifted = (long[extra:] - short - log_ratio) ** 2
    before = np.concatenate([[0.0], np.cumsum(unshifted)])
    after = np.concatenate([np.cumsum(shifted[::-1])[::-1], [0.0]])
    return int(np.argmin(before + after))
