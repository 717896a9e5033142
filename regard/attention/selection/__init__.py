"""Selections: scores → how much of each key is read?

Any of them goes with any score and any mask. Weights sum to 1 for `Softmax`, `Sparsemax`,
`Entmax`, `Hard`, `TopK` and `LocalMonotonic` where there is something to read, and to at most 1
for `LocalPredictive` and `Monotonic`.
"""

from regard.attention.selection.base import Selection, as_selection
from regard.attention.selection.hard import Hard
from regard.attention.selection.local import LocalMonotonic, LocalPredictive
from regard.attention.selection.monotonic import Monotonic
from regard.attention.selection.reinforce import reinforce
from regard.attention.selection.softmax import Softmax
from regard.attention.selection.sparse import Entmax, Sparsemax
from regard.attention.selection.top_k import TopK

__all__ = [
    "Entmax",
    "Hard",
    "LocalMonotonic",
    "LocalPredictive",
    "Monotonic",
    "Selection",
    "Softmax",
    "Sparsemax",
    "TopK",
    "as_selection",
    "reinforce",
]
