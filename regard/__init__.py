"""Attention: a query reads a memory of key–value pairs.

score    e = a(query, key)            how relevant is each key?
select   α = select(e, mask)          how much of each may be read?
read     context = Σ α · value        what was read
"""

from regard.attention import errors, kernels, masks, scores, selection
from regard.attention.attend import Attention, attend
from regard.attention.heads import MultiHead
from regard.attention.memory import Memory
from regard.attention.reading import Reading
from regard.attention.state import State

__all__ = [
    "Attention",
    "Memory",
    "MultiHead",
    "Reading",
    "State",
    "attend",
    "errors",
    "kernels",
    "masks",
    "scores",
    "selection",
]
