"""The shapes of all tensors, as types.

Outside, every tensor is `(*batch, length, size)`. Inside, every tensor in a record ends in
`(rows | 1, columns | 1)`, so that heads go in at axis −3, chosen rows are taken at axis −2 and
beams are reordered from the left.

`#` marks an axis that broadcasts if it is 1, `*` any number of axes.
"""

from collections.abc import Mapping

from jaxtyping import Bool, Float, Int
from torch import Tensor

Queries = Float[Tensor, "*#batch query query_size"]
Keys = Float[Tensor, "*#batch key key_size"]
Values = Float[Tensor, "*#batch key value_size"]
Bias = Float[Tensor, "*#batch #query #key"]
Scores = Float[Tensor, "*#batch query key"]
Weights = Float[Tensor, "*#batch query key"]
Context = Float[Tensor, "*#batch query value_size"]
Allowed = Bool[Tensor, "*#batch #query #key"]
"""May this query read this key?"""

PerQuery = Float[Tensor, "*#batch #query 1"]
PerKey = Float[Tensor, "*#batch 1 key"]
Count = Int[Tensor, "*#batch #query 1"]
NonFiniteFlags = Bool[Tensor, "*#batch 1 key"]
"""Was this key, or this value, non-finite?"""

Parameter = Float[Tensor, "*heads out in"]
"""A weight of a score or a selection: two axes, and one before them for heads."""

Scalar = Float[Tensor, "*heads 1 1"]

Prepared = Mapping[str, Tensor]
"""What a score computes of the keys once: `(*batch, key, …)` by name; `"keys"` is the main one."""

StepState = Mapping[str, Tensor]
"""What a score or a selection carries from step to step: tensors `(*batch, 1, key)` by name."""
