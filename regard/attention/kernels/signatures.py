"""What the functions of the C library take, and what they give.

All of it is here, and enters the hash by which a library is known: see `abi.py`.
"""

import ctypes
import struct

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
    "regard_dropped": ([POINTER] * 2 + [WHOLE] * 2 + [NATURAL] * 2 + [REAL] + [FLAG], None),
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


class DistanceArguments(ctypes.Structure):
    """What whole.c is told, in the same order."""

    _fields_ = (
        *((name, POINTER) for name in ("q", "k", "v", "of_keys", "of_values", "to")),
        *((name, WHOLE) for name in ("items", "rows", "keys", "size", "wide")),
        *((name, REAL) for name in ("factor", "floor")),
        ("kind", FLAG),
    )


class GruArguments(ctypes.Structure):
    """What gru.c is told, in the same order."""

    _fields_ = (
        *((name, POINTER) for name in ("inputs", "gates", "hidden", "both", "fresh", "after")),
        *((name, POINTER) for name in ("sent", "to_inputs", "to_gates", "to_hidden")),
        *((name, WHOLE) for name in ("rows", "size")),
    )


class HeadsArguments(ctypes.Structure):
    """What heads.c is told, in the same order."""

    _fields_ = (
        *((name, POINTER) for name in ("q", "pairs", "lengths", "past", "rows")),
        *((name, POINTER) for name in ("context", "weights")),
        *((name, WHOLE) for name in ("items", "share", "heads", "size", "count", "stride")),
        ("apart", WHOLE),
        ("scale", REAL),
    )


class StepArguments(ctypes.Structure):
    """What a step reads: step.c has the same fields in the same order."""

    _fields_ = (
        *((name, POINTER) for name in ("keys", "values", "reach", "allowed")),
        *((name, WHOLE) for name in ("items", "count", "size", "width", "wide")),
        *((name, WHOLE) for name in ("keys_share", "values_share", "v_share")),
        ("back", FLAG),
    )


DOTS_POINTERS = (
    "q", "k", "v", "sent", "first", "end",
    "context", "most", "share", "weights", "to_q", "to_k", "to_v",
)  # fmt: skip
DOTS_STRIDES = ("q", "k", "v", "sent", "span", "context", "to_q", "to_k", "to_v")
DOTS_COUNTS = ("slab_k", "slab_v", "outer", "inner", "rows", "keys", "size", "wide")
DOTS_NOTHING, DOTS_SHARES, DOTS_WEIGHTS = range(3)
"""What a read keeps for its backward."""

DOTS = struct.Struct(f"{len(DOTS_POINTERS)}P{3 * len(DOTS_STRIDES)}l{len(DOTS_COUNTS)}lfii")
"""What dots.c is told, in the same order: these, a factor, backward or not, and what is kept.

Packed so, because a ctypes structure takes longer.
"""


def declared(found: ctypes.CDLL) -> ctypes.CDLL:
    """The library, with what its functions take and give."""
    for name, (taken, given) in DECLARED.items():
        function = getattr(found, name)
        function.argtypes, function.restype = taken, given
    return found
