"""The seam to fused code. A read is a `Request`; a kernel answers it, or refuses with reasons.

`Reference` answers everything and is the truth that the others are held to, gradients included.
"""

from regard.attention.kernels.additive import Additive
from regard.attention.kernels.choose import (
    KERNELS,
    Keeps,
    Kernel,
    answer,
    available,
    chosen,
    keep,
    using,
    weights,
)
from regard.attention.kernels.comparison import Comparison, Dot, Gauss, Given, Inverse, Tanh
from regard.attention.kernels.dots import Dots
from regard.attention.kernels.heap import kept_heap
from regard.attention.kernels.loop import Loop, loop
from regard.attention.kernels.reference import Reference
from regard.attention.kernels.request import Request, View
from regard.attention.kernels.rule import Along, Around, Rule, Soft
from regard.attention.kernels.sdpa import Sdpa
from regard.attention.kernels.step import Step
from regard.attention.kernels.subnormal import flushed
from regard.attention.kernels.whole import Whole
from regard.attention.kernels.window import Windowed

__all__ = [
    "KERNELS",
    "Additive",
    "Along",
    "Around",
    "Comparison",
    "Dot",
    "Dots",
    "Gauss",
    "Given",
    "Inverse",
    "Keeps",
    "Kernel",
    "Loop",
    "Reference",
    "Request",
    "Rule",
    "Sdpa",
    "Soft",
    "Step",
    "Tanh",
    "View",
    "Whole",
    "Windowed",
    "answer",
    "available",
    "chosen",
    "flushed",
    "keep",
    "kept_heap",
    "loop",
    "using",
    "weights",
]
