"""Attention: a query reads a memory of key–value pairs.

score    e = a(query, key)            how relevant is each key?
select   α = select(e, mask)          how much of each may be read?
read     context = Σ α · value        what was read

Names are imported when first asked for, so that `regard --help` need not wait for torch.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from regard.attention import kernels, masks, scores, selection
    from regard.attention.attend import Attention, attend
    from regard.attention.core import errors
    from regard.attention.memory import Memory
    from regard.attention.multihead import MultiHead
    from regard.attention.reading import Reading
    from regard.attention.state import State
    from regard.tasks.run import load

_HOMES = {
    "Attention": "regard.attention.attend",
    "Memory": "regard.attention.memory",
    "MultiHead": "regard.attention.multihead",
    "Reading": "regard.attention.reading",
    "State": "regard.attention.state",
    "attend": "regard.attention.attend",
    "errors": "regard.attention.core.errors",
    "load": "regard.tasks.run",
}
"""In which module a name is; the others are modules of regard.attention themselves."""

__all__ = [
    "Attention",
    "Memory",
    "MultiHead",
    "Reading",
    "State",
    "attend",
    "errors",
    "kernels",
    "load",
    "masks",
    "scores",
    "selection",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = importlib.import_module(_HOMES.get(name, f"regard.attention.{name}"))
    found = getattr(home, name, home)  # a module is its own home
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
