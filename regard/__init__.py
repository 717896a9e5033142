"""Attention: a query reads a memory of key–value pairs.

score    e = a(query, key)            how relevant is each key?
select   α = select(e, mask)          how much of each may be read?
read     context = Σ α · value        what was read

Names are imported when first asked for, so that `regard --help` need not wait for torch.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.attention import errors, kernels, masks, scores, selection
    from regard.attention.attend import Attention, attend
    from regard.attention.heads import MultiHead
    from regard.attention.memory import Memory
    from regard.attention.reading import Reading
    from regard.attention.state import State

_HOMES = {
    "Attention": "attend",
    "Memory": "memory",
    "MultiHead": "heads",
    "Reading": "reading",
    "State": "state",
    "attend": "attend",
}
"""In which module a name is; the others are modules themselves."""

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


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = importlib.import_module(f"regard.attention.{_HOMES.get(name, name)}")
    found = getattr(home, name) if name in _HOMES else home
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
