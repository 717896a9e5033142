"""What the functions of the C library take and return.

All of it is here, and is part of the hash that identifies a library: see `abi.py`.
"""

import ctypes
import struct

POINTER, LONG, INT, FLOAT = ctypes.c_void_p, ctypes.c_long, ctypes.c_int, ctypes.c_float
UINT32 = ctypes.c_uint32

DONE, OUT_OF_RANGE, NO_MEMORY = range(3)
"""What functions return that may fail."""

SIGNATURES = {
    "regard_additive_scores": ([POINTER] * 5 + [LONG] * 5 + [FLOAT] + [INT], INT),
    "regard_additive_backward": ([POINTER] * 8 + [LONG] * 5 + [FLOAT] + [INT] * 3, INT),
    "regard_exponentials": ([POINTER] * 2 + [LONG] * 3 + [INT], FLOAT),
    "regard_reciprocal_group": ([FLOAT], INT),
    "regard_single_query": ([POINTER] * 3 + [FLOAT] + [POINTER] * 2 + [INT], INT),
    "regard_single_query_backward": ([POINTER] * 3 + [FLOAT] + [POINTER] * 2 + [INT], INT),
    "regard_additive_single_query_backward":
        ([POINTER] * 5 + [FLOAT] + [POINTER] * 3 + [INT], INT),
    "regard_multihead_step": ([POINTER, INT], INT),
    "regard_dot_softmax": ([POINTER, INT], INT),
    "regard_distance_softmax": ([POINTER, INT], INT),
    "regard_squared_distances": ([POINTER] * 4 + [LONG] * 4 + [INT], INT),
    "regard_gathered_matmul": ([INT] + [POINTER] * 4 + [LONG] * 3 + [INT], None),
    "regard_transpose": ([POINTER] * 2 + [LONG] * 2 + [INT], None),
    "regard_dropout": ([POINTER] * 2 + [LONG] * 2 + [UINT32] * 2 + [FLOAT] + [INT], None),
    "regard_add_layernorm": ([POINTER] * 5 + [FLOAT, POINTER] + [LONG] * 2 + [INT], None),
    "regard_l2_normalize": ([POINTER] * 2 + [FLOAT] + [LONG] * 2 + [INT], None),
    "regard_gru": ([POINTER, INT], None),
    "regard_quantize_int8": ([POINTER] * 3 + [LONG] * 2 + [INT], None),
    "regard_dequantize": ([POINTER] * 4 + [LONG] * 2 + [INT], None),
    "regard_log_softmax": ([POINTER] * 2 + [LONG] * 2 + [INT], None),
    "regard_cross_entropy":
        ([POINTER] * 3 + [FLOAT] * 2 + [POINTER] * 3 + [LONG] * 2 + [INT], None),
    "regard_argmax": ([POINTER] * 2 + [LONG] * 2 + [INT], None),
    "regard_flush_denormals": ([INT] * 2, INT),
    "regard_is_amd": ([], INT),
    "regard_level": ([], INT),
}  # fmt: skip
"""By name: the types of its arguments, and of its result."""


class DistanceArguments(ctypes.Structure):
    """The arguments of distance.c, in the same order."""

    _fields_ = (
        *((name, POINTER) for name in ("q", "k", "v", "key_index", "value_index", "to")),
        *((name, LONG) for name in ("items", "rows", "keys", "size", "value_size")),
        *((name, FLOAT) for name in ("factor", "floor")),
        ("kind", INT),
    )


class GruArguments(ctypes.Structure):
    """The arguments of gru.c, in the same order."""

    _fields_ = (
        *((name, POINTER) for name in ("inputs", "gates", "hidden")),
        *((name, POINTER) for name in ("reset_update", "candidate", "next_hidden")),
        *((name, POINTER) for name in ("grad_next", "grad_inputs", "grad_gates", "grad_hidden")),
        *((name, LONG) for name in ("rows", "size")),
    )


class MultiheadStepArguments(ctypes.Structure):
    """The arguments of multihead_step.c, in the same order."""

    _fields_ = (
        *((name, POINTER) for name in ("q", "pairs", "lengths", "past", "rows")),
        *((name, POINTER) for name in ("context", "weights")),
        *((name, LONG) for name in ("items", "items_per_memory", "heads", "head_size", "count")),
        *((name, LONG) for name in ("q_stride", "past_stride")),
        ("scale", FLOAT),
    )


class StepMemory(ctypes.Structure):
    """The memory that a step reads: single_query.c has the same fields in the same order."""

    _fields_ = (
        *((name, POINTER) for name in ("keys", "values", "max_abs", "allowed")),
        *((name, LONG) for name in ("items", "count", "size", "width", "value_size")),
        *((name, LONG) for name in ("items_per_keys", "items_per_values", "items_per_v")),
        ("reversed", INT),
    )


DOT_POINTERS = (
    "q", "k", "v", "grad_context", "first", "end",
    "context", "row_max", "row_scale", "weights", "grad_q", "grad_k", "grad_v",
)  # fmt: skip
DOT_STRIDES = (
    "q", "k", "v", "grad_context", "span", "context", "grad_q", "grad_k", "grad_v",
)  # fmt: skip
DOT_COUNTS = (
    "slab_k", "slab_v", "outer", "inner", "rows", "keys", "size", "value_size",
)  # fmt: skip
SAVE_NOTHING, SAVE_STATISTICS, SAVE_WEIGHTS = range(3)
"""What a forward pass saves for its backward."""

DOT_SOFTMAX = struct.Struct(f"{len(DOT_POINTERS)}P{3 * len(DOT_STRIDES)}l{len(DOT_COUNTS)}lfii")
"""The arguments of dot_softmax.c, in the same order: then factor, is backward, what to save.

Packed so, because a ctypes structure takes longer.
"""


def declare(library: ctypes.CDLL) -> ctypes.CDLL:
    """The library, with the types of what its functions take and return."""
    for name, (argument_types, result_type) in SIGNATURES.items():
        function = getattr(library, name)
        function.argtypes, function.restype = argument_types, result_type
    return library
