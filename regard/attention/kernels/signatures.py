"""What the functions of the C library take, and what they give."""

import ctypes

POINTER, WHOLE, FLAG, REAL = ctypes.c_void_p, ctypes.c_long, ctypes.c_int, ctypes.c_float
NATURAL = ctypes.c_uint32

DECLARED = {
    "regard_additive_scores": ([POINTER] * 5 + [WHOLE] * 5 + [REAL] + [FLAG], FLAG),
    "regard_additive_backward": ([POINTER] * 8 + [WHOLE] * 5 + [REAL] + [FLAG] * 3, FLAG),
    "regard_exponentials": ([POINTER] * 2 + [WHOLE] * 3 + [FLAG], REAL),
    "regard_step": ([POINTER] * 3 + [REAL] + [POINTER] * 2 + [FLAG], FLAG),
    "regard_step_back": ([POINTER] * 3 + [REAL] + [POINTER] * 2 + [FLAG], FLAG),
    "regard_additive_step_back": ([POINTER] * 5 + [REAL] + [POINTER] * 3 + [FLAG], FLAG),
    "regard_distances": ([POINTER] * 4 + [WHOLE] * 4 + [FLAG], FLAG),
    "regard_whole": ([POINTER, FLAG], FLAG),
    "regard_dots": ([POINTER, FLAG], FLAG),
    "regard_turned": ([POINTER] * 2 + [WHOLE] * 2 + [FLAG], None),
    "regard_own": ([FLAG] + [POINTER] * 4 + [WHOLE] * 3 + [FLAG], None),
    "regard_dropped": ([POINTER] * 2 + [WHOLE] + [NATURAL] * 2 + [REAL] + [FLAG], None),
    "regard_tokens": ([POINTER] * 3 + [REAL] * 2 + [POINTER] * 3 + [WHOLE] * 2 + [FLAG], None),
    "regard_best": ([POINTER] * 2 + [WHOLE] * 2 + [FLAG], None),
    "regard_heads": ([POINTER, FLAG], FLAG),
    "regard_residual": ([POINTER] * 5 + [REAL, POINTER] + [WHOLE] * 2 + [FLAG], None),
    "regard_unit": ([POINTER] * 2 + [REAL] + [WHOLE] * 2 + [FLAG], None),
    "regard_gru": ([POINTER, FLAG], None),
    "regard_rounded": ([POINTER] * 3 + [WHOLE] * 2 + [FLAG], None),
    "regard_unrounded": ([POINTER] * 4 + [WHOLE] * 2 + [FLAG], None),
    "regard_flush": ([FLAG] * 2, FLAG),
    "regard_together": ([REAL], FLAG),
    "regard_amd": ([], FLAG),
    "regard_level": ([], FLAG),
}
"""By name: the types of its arguments, and of its result."""


def declared(found: ctypes.CDLL) -> ctypes.CDLL:
    """The library, with what its functions take and give."""
    for name, (taken, given) in DECLARED.items():
        function = getattr(found, name)
        function.argtypes, function.restype = taken, given
    return found
