"""The seam to fused code. A read is a `Request`; a kernel answers it, or refuses with reasons.

`Reference` answers everything and is the truth that the others are held to, gradients included.
"""

from regard.attention.core.deferred_grad import deferred_gradients
from regard.attention.kernels.additive import AdditiveKernel
from regard.attention.kernels.comparison import (
    AdditiveComparison,
    Comparison,
    DotComparison,
    GaussianComparison,
    InverseDistanceComparison,
    PrecomputedScores,
)
from regard.attention.kernels.deferred_single_query import DeferredSingleQuery
from regard.attention.kernels.dispatch import (
    KERNELS,
    CachesKeys,
    Kernel,
    available,
    cache_keys,
    dispatch,
    is_overridden,
    using,
    weights,
)
from regard.attention.kernels.distance_softmax import DistanceSoftmax
from regard.attention.kernels.dot_softmax import DotSoftmax
from regard.attention.kernels.reference import Reference
from regard.attention.kernels.request import ReadCache, Request, View
from regard.attention.kernels.rule import FixedWindowRule, GaussianWindowRule, Rule, SoftmaxRule
from regard.attention.kernels.sdpa import Sdpa
from regard.attention.kernels.single_query import SingleQuery
from regard.attention.kernels.windowed import Windowed
from regard.native.loader import NativeLibraryWarning
from regard.native.process import flush_denormals, keep_heap

__all__ = [
    "KERNELS",
    "AdditiveComparison",
    "AdditiveKernel",
    "CachesKeys",
    "Comparison",
    "DeferredSingleQuery",
    "DistanceSoftmax",
    "DotComparison",
    "DotSoftmax",
    "FixedWindowRule",
    "GaussianComparison",
    "GaussianWindowRule",
    "InverseDistanceComparison",
    "Kernel",
    "NativeLibraryWarning",
    "PrecomputedScores",
    "ReadCache",
    "Reference",
    "Request",
    "Rule",
    "Sdpa",
    "SingleQuery",
    "SoftmaxRule",
    "View",
    "Windowed",
    "available",
    "cache_keys",
    "deferred_gradients",
    "dispatch",
    "flush_denormals",
    "is_overridden",
    "keep_heap",
    "using",
    "weights",
]
